"""A capture that fails, tears or is killed at every file operation: the old state or the new one, and which is said.

The invariants of P4, for every N: the run directory is absent, an empty claim, or a run that opens; what a write
acknowledged is readable; every visible file is whole; nothing is called completed that did not end; the next start of
another process takes over an empty claim and is refused for anything else, without changing it.
"""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from paritrace.errors import EvidenceError, HostError, Outcome
from paritrace.evidence.calls import Name
from paritrace.evidence.journal import Loss
from paritrace.files import Appender, Files
from paritrace.runs.envelope import ENVELOPE_NAME, AttachmentKind, SessionStatus
from paritrace.runs.opening import begin_session
from paritrace.runs.pack import pack
from paritrace.runs.reading import Run, open_run
from paritrace.runs.removal import remove_run
from paritrace.runs.verify import Finding, verify
from paritrace.testing.clocks import ManualClock
from paritrace.testing.faults import Fault, FaultyFiles, Stopped, hidden_leftovers, visible_files
from tests.runs.making import SOURCE, another_process, capture, finish, request, write_records

KILLS = [Fault.STOP, Fault.TEAR_AND_STOP, Fault.DONE_THEN_STOP]
ERRORS = [Fault.FAIL, Fault.TEAR]


def scenario(run_dir: Path, files: Files, told: list[bytes]) -> None:
    """A capture in which every acknowledged line is noted."""
    session = begin_session(run_dir, request(process=another_process()), files=files, clock=ManualClock())
    journal = session.open_journal()
    lines = write_records(session, _Noting(journal, told))
    journal.sync()
    session.commit_live("tensor_trace:rank-0:calls")
    session.attach_copy(AttachmentKind.SOURCE, "<main>", SOURCE, "text/x-python")
    session.flush()
    finish(session, _Noting(journal, told), lines=lines)


class _Noting(Appender):
    """An appender that notes the lines its file acknowledged."""

    def __init__(self, inner: Appender, told: list[bytes]) -> None:
        self._inner = inner
        self._told = told

    def write(self, data: bytes) -> int:
        start = self._inner.write(data)
        self._told.append(data)
        return start

    def close(self) -> None:
        self._inner.close()


def every_n(
    tmp_path: Path, fault: Fault, *, number: int = errno.ENOSPC
) -> list[tuple[Path, list[bytes], BaseException]]:
    """Run the scenario with the fault at operation 1, 2, … until it is not met any more."""
    ended: list[tuple[Path, list[bytes], BaseException]] = []
    while True:
        run_dir = tmp_path / f"{len(ended) + 1}" / "run"
        run_dir.parent.mkdir(parents=True)
        files, told = FaultyFiles(at=len(ended) + 1, fault=fault, number=number), list[bytes]()
        error = _met(partial(scenario, run_dir, files, told))
        files.faulty.release()
        if error is None:
            if not files.faulty.happened:
                return ended
            error = _Survived()
        ended.append((run_dir, told, error))


class _Survived(Exception):  # noqa: N818
    """The fault was met and did no harm."""


def _met(act: Callable[[], object]) -> BaseException | None:
    try:
        act()
    except (Stopped, HostError) as error:
        return error
    return None


def state_of(run_dir: Path) -> str:
    """Return absent, claimed or run, and check what must hold in each."""
    if not run_dir.exists():
        return "absent"
    if not (run_dir / ENVELOPE_NAME).exists():
        assert visible_files(run_dir) == set()
        return "claimed"
    return "run"


def check_run(run: Run, told: list[bytes], *, ended: bool) -> None:
    (view,) = run.sessions
    journal = run.session_folder("rank-0") / "calls.jsonl"
    data = journal.read_bytes() if journal.exists() else b""
    kept = data.splitlines(keepends=True)
    assert [line for line in kept if line in told] == told
    reader = run.journal("rank-0")
    records = [item for item in reader if not isinstance(item, Loss)]
    account = reader.account
    assert account.size == account.record_bytes + account.torn_bytes + account.foreign_bytes == len(data)
    assert len(records) >= len(told)
    assert ended or view.status in (SessionStatus.INTERRUPTED, SessionStatus.COMPLETED)
    found = verify(run)
    assert found.verdict in (Finding.INTACT, Finding.NOT_CHECKED), found.items
    if view.status is SessionStatus.COMPLETED:
        assert view.receipt is not None
        assert found.verdict is Finding.INTACT


@pytest.mark.parametrize("fault", KILLS)
def test_a_capture_killed_at_every_operation(tmp_path: Path, fault: Fault) -> None:
    ended = every_n(tmp_path, fault)
    assert len(ended) > 60
    states = []
    for run_dir, told, _ in ended:
        states.append(state_of(run_dir))
        if states[-1] == "run":
            check_run(open_run(run_dir), told, ended=False)
            before = {name: (run_dir / name).read_bytes() for name in visible_files(run_dir)}
            with pytest.raises(EvidenceError) as caught:
                begin_session(run_dir, request())
            assert (caught.value.code, caught.value.outcome) == ("run_exists", Outcome.REFUSED)
            assert {name: (run_dir / name).read_bytes() for name in visible_files(run_dir)} == before
        else:
            capture(run_dir)  # the next start takes the claim over
            assert open_run(run_dir).sessions[0].status is SessionStatus.COMPLETED
    assert set(states) >= {"absent", "claimed", "run"} or fault is Fault.DONE_THEN_STOP
    statuses = {open_run(run_dir).sessions[0].status for run_dir, _, _ in ended if state_of(run_dir) == "run"}
    assert SessionStatus.INTERRUPTED in statuses


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("fault", ERRORS)
def test_a_capture_with_an_error_at_every_operation(tmp_path: Path, fault: Fault, number: int) -> None:
    for run_dir, told, error in every_n(tmp_path, fault, number=number):
        if isinstance(error, HostError):
            assert error.code == ("io_error" if number == errno.EIO else "disk_full")
            assert error.fix
        assert hidden_leftovers(run_dir) == []
        if state_of(run_dir) == "run":
            check_run(open_run(run_dir), told, ended=True)


@pytest.mark.parametrize("fault", list(Fault))
def test_packing_at_every_operation_leaves_the_run_and_a_whole_archive_or_none(tmp_path: Path, fault: Fault) -> None:
    run_dir = tmp_path / "run"
    capture(run_dir)
    before = {name: (run_dir / name).read_bytes() for name in visible_files(run_dir)}
    at, whole = 0, 0
    while True:
        at += 1
        output = tmp_path / f"{at}" / "run.tar.zst"
        files = FaultyFiles(at=at, fault=fault)
        error = _met(partial(pack, run_dir, output, files=files))
        assert {name: (run_dir / name).read_bytes() for name in visible_files(run_dir)} == before
        if output.exists():
            whole += 1
            with open_run(output) as run:
                assert verify(run).verdict is Finding.INTACT
        else:
            assert error is not None
        if error is None and not files.faulty.happened:
            break
    assert whole >= 1
    assert at > 15


@pytest.mark.parametrize("fault", KILLS)
def test_removing_at_every_operation_leaves_the_whole_run_or_none(tmp_path: Path, fault: Fault) -> None:
    at = 0
    while True:
        at += 1
        run_dir = tmp_path / f"{at}" / "run"
        capture(run_dir)
        names = visible_files(run_dir)
        files = FaultyFiles(at=at, fault=fault)
        error = _met(partial(remove_run, run_dir, files=files))
        if run_dir.exists():
            assert visible_files(run_dir) == names
            assert verify(open_run(run_dir)).verdict is Finding.INTACT
        if error is None:
            assert list(run_dir.parent.iterdir()) == []
            break
    assert at > 8


def test_a_removal_that_fails_half_way_says_what_is_left(tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    capture(run_dir)
    files = FaultyFiles(at=1, fault=Fault.STOP)
    assert _met(partial(remove_run, run_dir, files=files)) is not None  # the first operation is a read
    failing = FaultyFiles(at=10_000, fault=Fault.FAIL)
    remove_run(run_dir, files=failing)
    rename = failing.faulty.log.index("rename") + 1
    capture(run_dir)
    with pytest.raises(HostError) as caught:
        remove_run(run_dir, files=FaultyFiles(at=rename + 2, fault=Fault.FAIL, number=errno.EIO))
    assert (caught.value.code, caught.value.outcome) == ("removal_cut_off", Outcome.FAILED)
    (left,) = tmp_path.iterdir()
    assert str(left) in caught.value.message


CAPTURING = """
import sys
from pathlib import Path
from msgspec.structs import replace
from paritrace.evidence import codec
from paritrace.evidence.calls import Name
from paritrace.runs.opening import begin_session
from tests.runs.making import header, request
session = begin_session(Path(sys.argv[1]), request())
with session.open_journal() as journal:
    journal.write(codec.encode_mark(header(session)))
    number = 0
    while True:
        journal.write(codec.encode_mark(Name(number, "x" * (number % 301))))
        print(number, flush=True)
        number += 1
"""


@pytest.mark.slow
@pytest.mark.parametrize("rounds", range(20))
def test_kill_nine_while_writing_loses_nothing_that_was_flushed(tmp_path: Path, rounds: int) -> None:
    run_dir = tmp_path / "run"
    with subprocess.Popen(
        [sys.executable, "-c", CAPTURING, str(run_dir)], stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
    ) as child:
        assert child.stdout is not None
        told = -1
        for _ in range(1 + 37 * rounds):
            told = int(child.stdout.readline())
        os.kill(child.pid, signal.SIGKILL)
        rest = child.stdout.read().split(b"\n")[:-1]
        child.wait(timeout=60)
    told = int(rest[-1]) if rest else told
    run = open_run(run_dir)
    assert run.sessions[0].seen.words == "interrupted; cause unknown"
    items = list(run.records("rank-0"))
    numbers = [item.id for item in items if isinstance(item, Name)]
    assert numbers == list(range(len(numbers)))
    assert len(numbers) >= told + 1
    assert sum(isinstance(item, Loss) for item in items) <= 1
    assert verify(run).verdict is Finding.NOT_CHECKED
