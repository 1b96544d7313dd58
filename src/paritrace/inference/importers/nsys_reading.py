"""Rows of an Nsight Systems export become activities and iterations, a table at a time (IN-11, IN-26)."""

from collections import Counter
from collections.abc import Iterator

from msgspec import Struct

from paritrace.evidence.ids import Ref
from paritrace.inference.execution_ranges import kind_of_range
from paritrace.inference.identities import derived_id
from paritrace.inference.importers.nsys_account import NsysAccount
from paritrace.inference.importers.nsys_contexts import NsysContexts
from paritrace.inference.importers.nsys_devices import Devices
from paritrace.inference.importers.nsys_diagnostics import Diagnostic
from paritrace.inference.importers.nsys_tables import Export
from paritrace.inference.records import Activity, ClockAlignment, Iteration, Loss
from paritrace.inference.vocabulary import ActivityKind, Domain, LossReason

_PID_SHIFT, _PART_MASK = 24, 0xFFFFFF  # a global thread id: hardware and VM, process, thread, in 24 bits each
_RANGE_TYPES = frozenset((59, 60))  # NVTX push/pop and start/end; a range of another thread's end has no thread
_DRIVER = 1  # of the column eventClass: a call of the driver API
_NO_OP: dict[str, object] = {"no_op_attribution": "graph"}
_MOST_TEXTS = 200_000  # names kept at once


class WorkTable(Struct, frozen=True):
    """One kind of device work. `names`: columns that hold the id of its name, the best first."""

    what: str
    table: str
    kind: ActivityKind
    names: tuple[str, ...] = ()


WORK = (
    WorkTable("kernels", "CUPTI_ACTIVITY_KIND_KERNEL", ActivityKind.KERNEL, ("demangledName", "shortName")),
    WorkTable("copies", "CUPTI_ACTIVITY_KIND_MEMCPY", ActivityKind.MEMCPY),
    WorkTable("sets", "CUPTI_ACTIVITY_KIND_MEMSET", ActivityKind.MEMSET),
    WorkTable("graphs", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", ActivityKind.GRAPH_LEVEL),
    WorkTable("device graphs", "CUPTI_ACTIVITY_KIND_DEVICE_GRAPH_TRACE", ActivityKind.GRAPH_LEVEL),
)
LAUNCHES, RANGES, DIAGNOSTICS = "launches", "NVTX ranges", "diagnostics"
_WORK_COLUMNS = ("start", "end", "deviceId", "streamId", "correlationId", "globalPid", "graphId", "graphNodeId")
_LAUNCH_COLUMNS = ("start", "end", "correlationId", "globalTid", "nameId", "eventClass")
_RANGE_COLUMNS = ("start", "end", "eventType", "text", "textId", "globalTid", "endGlobalTid")


class Reading:
    """Reads one export once, in memory that grows with the number of launches alone."""

    def __init__(self, export: Export, contexts: NsysContexts, *, account: NsysAccount, pattern: str | None) -> None:
        self._export = export
        self._contexts = contexts
        self._account = account
        self._pattern = pattern
        self._devices = Devices(export)
        self._texts: dict[int, str | None] = {}
        self._has_texts = export.find("STRINGIDS", needs=("id", "value"))
        self._used: set[tuple[int | None, int]] = set()
        self._only_pid = self._only_process()
        contexts.version = self._version()

    def events(self) -> Iterator[Activity | Iteration | ClockAlignment | Loss]:
        """Yield device work, ranges, launches to which device work belongs, and the clocks."""
        for table in WORK:
            yield from self._work(table)
        yield from self._ranges()
        yield from self._launches()
        yield from self._clocks()

    def diagnostics(self) -> Iterator[Diagnostic]:
        """Yield the lines of the profiler."""
        found = self._export.find("DIAGNOSTIC_EVENT", needs=("text",))
        self._account.see(DIAGNOSTICS, found)
        for text, severity in self._export.rows(found, ("text", "severity")):
            self._account.rows[DIAGNOSTICS] += 1
            if isinstance(text, str):
                yield Diagnostic(_whole(severity), text)

    def _work(self, table: WorkTable) -> Iterator[Activity | Loss]:
        found = self._export.find(table.table, needs=("start", "end"))
        self._account.see(table.what, found)
        without_time = 0
        for place, row in enumerate(self._export.rows(found, (*_WORK_COLUMNS, *table.names))):
            self._account.rows[table.what] += 1
            activity = self._activity(table, row, place)
            without_time += activity.end_ns is None
            yield activity
        if without_time:
            self._account.counts[f"{table.what} without times"] = without_time
            yield Loss(
                context=self._contexts.of(None),
                event_id=derived_id("loss", self._contexts.attachment_id, table.table),
                source=self._contexts.attachment_id,
                what=f"times of {table.what}",
                reason=LossReason.NO_TIME,
                count=without_time,
            )

    def _activity(self, table: WorkTable, row: tuple[object, ...], place: int) -> Activity:
        start, end, ordinal, stream, correlation, process, graph, node = (_whole(value) for value in row[:8])
        timed = start is not None and end is not None and end >= start
        if table.kind is ActivityKind.GRAPH_LEVEL and start == end == 0:
            timed = False  # a graph whose times were not collected
        pid = self._only_pid if process is None else process >> _PID_SHIFT & _PART_MASK
        if correlation is not None:
            self._used.add((pid, correlation))
        metadata: dict[str, object] = {}
        if graph or node:
            metadata |= _NO_OP
        if not timed:
            metadata["time"] = "not_collected" if start == end == 0 else "unusable"
        contexts = self._contexts
        return Activity(
            context=contexts.of(pid, device_uuid=self._devices.uuid(pid, ordinal)),
            event_id=contexts.event_id(table.table, place),
            activity_ref=Ref(contexts.producer, f"{table.table}:{place}"),
            kind=table.kind,
            domain=Domain.GPU,
            name=self._name(row[8:]),
            correlation_scope=contexts.correlation_scope,
            trace_attachment_id=contexts.attachment_id,
            cuda_correlation_id="" if correlation is None else str(correlation),
            device_id=None if ordinal is None else str(ordinal),
            stream_id=None if stream is None else str(stream),
            graph_id=str(graph) if graph else None,
            start_ns=start if timed else None,
            end_ns=end if timed else None,
            metadata=metadata,
        )

    def _launches(self) -> Iterator[Activity]:
        table = "CUPTI_ACTIVITY_KIND_RUNTIME"
        found = self._export.find(table, needs=("start", "end", "correlationId", "globalTid"))
        self._account.see(LAUNCHES, found)
        contexts = self._contexts
        for place, row in enumerate(self._export.rows(found, _LAUNCH_COLUMNS)):
            self._account.rows[LAUNCHES] += 1
            start, end, correlation, thread = (_whole(value) for value in row[:4])
            if thread is None or correlation is None:
                continue
            pid = thread >> _PID_SHIFT & _PART_MASK
            if (pid, correlation) not in self._used:
                self._account.counts["launches without device work"] += 1
                continue
            timed = start is not None and end is not None and end >= start
            yield Activity(
                context=contexts.of(pid),
                event_id=contexts.event_id(table, place),
                activity_ref=Ref(contexts.producer, f"{table}:{place}"),
                kind=ActivityKind.DRIVER if row[5] == _DRIVER else ActivityKind.RUNTIME,
                domain=Domain.RUNTIME,
                name=self._name(row[4:5]),
                correlation_scope=contexts.correlation_scope,
                trace_attachment_id=contexts.attachment_id,
                cuda_correlation_id=str(correlation),
                thread_id=str(thread & _PART_MASK),
                start_ns=start if timed else None,
                end_ns=end if timed else None,
            )

    def _ranges(self) -> Iterator[Iteration]:
        found = self._export.find("NVTX_EVENTS", needs=("start", "end", "eventType", "globalTid"))
        self._account.see(RANGES, found)
        named: Counter[str] = Counter()
        contexts = self._contexts
        for place, row in enumerate(self._export.rows(found, _RANGE_COLUMNS)):
            self._account.rows[RANGES] += 1
            start, end, thread, end_thread = (_whole(row[column]) for column in (0, 1, 5, 6))
            name = row[3] if isinstance(row[3], str) else self._name(row[4:5])
            if name is None or row[2] not in _RANGE_TYPES or kind_of_range(name, pattern=self._pattern) is None:
                continue
            if start is None or end is None or thread is None or end < start or end_thread not in (None, thread):
                self._account.counts["ranges without an end on their thread"] += 1
                continue
            named[name] += 1
            yield Iteration(
                context=contexts.of(thread >> _PID_SHIFT & _PART_MASK),
                event_id=contexts.event_id("NVTX_EVENTS", place),
                iteration_ref=Ref(contexts.producer, name if named[name] == 1 else f"{name} ({named[name]})"),
                start_ns=start,
                end_ns=end,
                thread_id=str(thread & _PART_MASK),
                trace_attachment_id=contexts.attachment_id,
                anchor=name,
            )

    def _clocks(self) -> Iterator[ClockAlignment]:
        columns = ("utcEpochNs", "systemClockNs")
        found = self._export.find("TARGET_INFO_SESSION_START_TIME", needs=())
        row = next(self._export.rows(found, columns), None)
        if row is not None:
            times = {column: _whole(value) for column, value in zip(columns, row, strict=True)}
            yield from self._contexts.alignments({name: time for name, time in times.items() if time is not None})

    def _name(self, values: tuple[object, ...]) -> str | None:
        """The first of these that is a text, or the id of one."""
        for value in values:
            if isinstance(value, str) and value:
                return value
            number = _whole(value)
            if number is None or not self._has_texts.readable:
                continue
            if number not in self._texts:
                if len(self._texts) >= _MOST_TEXTS:
                    self._texts.clear()
                self._texts[number] = self._export.text(self._has_texts.name, number)
            if self._texts[number]:
                return self._texts[number]
        return None

    def _only_process(self) -> int | None:
        """The one process that launches, for exports whose device work names none; None where there are several."""
        found = self._export.find("CUPTI_ACTIVITY_KIND_RUNTIME", needs=("globalTid",))
        threads = (_whole(thread) for (thread,) in self._export.rows(found, ("globalTid",)))
        processes = {thread >> _PID_SHIFT & _PART_MASK for thread in threads if thread is not None}
        return processes.pop() if len(processes) == 1 else None

    def _version(self) -> str | None:
        found = self._export.find("META_DATA_EXPORT", needs=("name", "value"))
        told = {name: value for name, value in self._export.rows(found, ("name", "value"))}  # noqa: C416
        version = told.get("EXPORT_PRODUCT_VERSION")
        return version if isinstance(version, str) and version else None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None
