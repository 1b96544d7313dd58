"""A process table that a test scripts: processes start, end, are adopted and hidden between any two reads (RS-3)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from msgspec import structs

from paritrace.evidence.gaps import Gap, ResourceGap, RunGap
from paritrace.evidence.ids import ProcessIdentity
from paritrace.process.table import Gone, HiddenTable, IdentityRule, ProcessRow, Unreadable

INIT = 1
BOOT = "boot-1"
_FIRST_MOMENT = 100


@dataclass(frozen=True)
class _Process:
    row: ProcessRow
    readable: bool = True


@dataclass
class ScriptedTable:
    """A machine whose processes a test moves by hand. Each read is one step; `at` says what happens before which.

    `adopters`: who takes in orphans, besides init. `calls`: the reads that were made, in order.
    """

    rule: IdentityRule = IdentityRule.PARENT_REREAD
    lists_children: bool = True
    boot_id: str | Gap[RunGap] = BOOT
    hidden: str = ""
    adopters: set[int] = field(default_factory=set)
    calls: list[tuple[str, int]] = field(default_factory=list)
    unlisted: set[int] = field(default_factory=set)
    _processes: dict[int, _Process] = field(default_factory=dict)
    _script: dict[int, list[Callable[[], object]]] = field(default_factory=dict)
    _awaited: dict[tuple[str, int, int], Callable[[], object]] = field(default_factory=dict)
    _moment: int = _FIRST_MOMENT

    # what happens on the machine

    def start(
        self, pid: int, parent: int = INIT, *, session: int = 10, cpu: float = 0.0, resident: int = 1000
    ) -> ProcessRow:
        """A process is born now."""
        assert pid not in self._processes, f"process {pid} lives"
        self._moment += 1
        row = ProcessRow(
            pid=pid,
            parent=parent,
            start=self._moment,
            session=session,
            zombie=False,
            own_cpu_seconds=cpu,
            waited_cpu_seconds=0.0,
            resident_bytes=resident,
        )
        self._processes[pid] = _Process(row)
        return row

    def exit(self, pid: int) -> None:
        """It ends and waits for its parent; its children go to the nearest adopter."""
        adopter = self._adopter_of(pid)
        for child in [row for row in self.rows() if row.parent == pid]:
            self._set(replace_row(child, parent=adopter))
        self._set(replace_row(self._processes[pid].row, zombie=True, resident_bytes=0))

    def wait(self, pid: int) -> None:
        """Its parent waits for it: it is gone, and its CPU time is its parent's."""
        row = self._processes.pop(pid).row
        if row.parent in self._processes:
            parent = self._processes[row.parent].row
            used = row.own_cpu_seconds + row.waited_cpu_seconds
            self._set(replace_row(parent, waited_cpu_seconds=parent.waited_cpu_seconds + used))

    def end(self, pid: int) -> None:
        """It ends and is waited for."""
        self.exit(pid)
        self.wait(pid)

    def deny(self, pid: int) -> None:
        """It becomes another user's."""
        self._processes[pid] = replace(self._processes[pid], readable=False)

    def work(self, pid: int, seconds: float) -> None:
        """It uses CPU time."""
        row = self._processes[pid].row
        self._set(replace_row(row, own_cpu_seconds=row.own_cpu_seconds + seconds))

    def rows(self) -> list[ProcessRow]:
        """Everything there is, zombies too."""
        return [process.row for process in self._processes.values()]

    # when it happens

    def at(self, number: int, do: Callable[[], object]) -> None:
        """Do it before the read of that number, counted from 0."""
        self._script.setdefault(number, []).append(do)

    def before(self, call: str, pid: int, do: Callable[[], object], *, nth: int = 1) -> None:
        """Do it before the nth call of this name for this process."""
        self._awaited[call, pid, nth] = do

    # the table

    def now(self) -> int:
        return self._moment

    def age_seconds(self, start: int) -> float:
        return self._moment - start

    def identity(self, pid: int) -> ProcessIdentity:
        process = self._processes.get(pid)
        return ProcessIdentity(
            host="scripted",
            boot_id=self.boot_id,
            pid_namespace="pid:[1]",
            pid=pid,
            start_ticks=process.row.start if process else Gap(RunGap.NO_START_TICKS),
        )

    def row(self, pid: int) -> ProcessRow | Gone | Unreadable:
        self._step("row", pid)
        return self._read(pid)

    def children(self, pid: int) -> frozenset[int] | Gone | Unreadable:
        self._step("children", pid)
        read = self._read(pid)
        if not isinstance(read, ProcessRow):
            return read
        return frozenset(row.pid for row in self.rows() if row.parent == pid) - self.unlisted

    def parents(self) -> Mapping[int, int] | Unreadable | HiddenTable:
        self._step("parents", 0)
        if self.hidden:
            return HiddenTable(self.hidden)
        for process in self._processes.values():
            if not process.readable:
                return Unreadable(f"process {process.row.pid} of another user")
        return {row.pid: row.parent for row in self.rows() if row.pid not in self.unlisted}

    def pss_bytes(self, pid: int) -> int | Gap[ResourceGap]:
        read = self._read(pid)
        if isinstance(read, ProcessRow):
            return read.resident_bytes // 2
        return Gap(ResourceGap.UNREADABLE, f"process {pid}")

    def _read(self, pid: int) -> ProcessRow | Gone | Unreadable:
        process = self._processes.get(pid)
        if process is None:
            return Gone()
        return process.row if process.readable else Unreadable(f"process {pid} of another user")

    def _step(self, call: str, pid: int) -> None:
        for do in self._script.pop(len(self.calls), []):
            do()
        self.calls.append((call, pid))
        awaited = self._awaited.pop((call, pid, self.calls.count((call, pid))), None)
        if awaited is not None:
            awaited()

    def _adopter_of(self, pid: int) -> int:
        parent = self._processes[pid].row.parent
        while parent in self._processes and parent not in self.adopters:
            parent = self._processes[parent].row.parent
        return parent if parent in self._processes else INIT

    def _set(self, row: ProcessRow) -> None:
        self._processes[row.pid] = replace(self._processes[row.pid], row=row)


def replace_row(row: ProcessRow, **changes: object) -> ProcessRow:
    """The same process a moment later."""
    return structs.replace(row, **changes)
