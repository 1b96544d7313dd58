"""Reading run records: cut anywhere, interrupted, two of a kind, moved clocks, foreign bytes (RR-1, RR-5, RR-7)."""

import os
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from paritrace.evidence.gaps import Gap
from paritrace.files import Files
from paritrace.process.exit_watch import SeenExit
from paritrace.process.stop_facts import ExchangeEnd, Exited, Signalled, StopFacts
from paritrace.runs.reading import open_run
from paritrace.runs.record_ends import End, RecordStatus
from paritrace.runs.record_lines import AdapterKind, Context, Ids, Names, RecordGap, Start
from paritrace.runs.record_reading import ReadRecord, RecordState, read_record, read_records, with_seen_ends
from paritrace.runs.record_words import record_words
from paritrace.runs.recorded_session import RecordedSession
from paritrace.runs.recording import RunRecord, encoded, invocation_folder, new_id, start_line
from paritrace.runs.verify import Finding, verify
from paritrace.testing.clocks import ManualClock
from tests.runs.recording import shell, the_record

IDS = Ids("runtime-1", "invocation-1", "request-1")
NONE: Gap[RecordGap] = Gap(RecordGap.NOT_GIVEN)
NAMES = Names(agent="a", harness=NONE, adapter=NONE, adapter_kind=AdapterKind.COMMAND)


def lines(*, wall_step_ns: int = 0) -> tuple[Start, End]:
    clock = ManualClock()
    start = start_line(IDS, NAMES, Context(), timeout_seconds=None, clock=clock)
    clock.move(3_000_000_000)
    clock.step_wall(wall_step_ns)
    end = End(
        time="",
        wall_ns=clock.wall_ns(),
        monotonic_ns=clock.monotonic_ns(),
        runtime_id=IDS.runtime_id,
        invocation_id=IDS.invocation_id,
        request_id=IDS.request_id,
        status=RecordStatus.SUCCEEDED,
        error=None,
        elapsed_seconds=3.0,
        stop=None,
        facts=StopFacts(exchange=ExchangeEnd.SUCCEEDED, ended_ns=clock.monotonic_ns(), wait=Exited(0)),
    )
    return start, end


def written(root: Path, data: bytes) -> Path:
    folder = invocation_folder(root, IDS)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run-record.jsonl").write_bytes(data)
    return folder


def test_a_record_cut_at_any_byte_is_told_and_never_raises(tmp_path: Path) -> None:
    start, end = (encoded(line) for line in lines())
    whole = start + end
    for size in range(0, len(whole) + 1, 7):
        read = read_record(written(tmp_path, whole[:size]))
        if size == 0:
            assert (read.state, read.words) == (RecordState.UNREADABLE, "it has no start line")
        elif size < len(start):
            assert (read.state, read.words) == (RecordState.INTERRUPTED, "its start line was cut off; cause unknown")
        elif size < len(whole):
            assert (read.state, read.end) == (RecordState.RUNNING, None), "its recorder, this process, lives"
        if 0 < size < len(whole) and size != len(start):
            assert read.torn is not None
            assert read.torn.offset + read.torn.num_bytes == size
            assert whole[read.torn.offset : size].startswith(read.torn.text.encode())
    assert read_record(written(tmp_path, whole)).state is RecordState.COMPLETE


def test_a_start_without_an_end_whose_recorder_is_gone_is_interrupted(tmp_path: Path) -> None:
    start, _ = lines()
    gone = replace(start, recorder=replace(start.recorder, pid=2**22 - 1))
    read = read_record(written(tmp_path, encoded(gone)))
    assert (read.state, read.words, read.end) == (RecordState.INTERRUPTED, "interrupted; cause unknown", None)
    assert any("interrupted; cause unknown" in line for line in record_words(read))


def killed_rank_and_launcher(wait: Exited | Signalled | None, *, pid: int = 2**22 - 1) -> list[ReadRecord]:
    """The record of a rank without an end, and the one of a launcher that saw process 4194303 of that rank end."""
    start, end = lines()
    context = Context(values={"session_id": "rank-1"})
    names = replace(NAMES, adapter_kind=AdapterKind.OWN_PROCESS)
    rank = replace(start, names=names, context=context, recorder=replace(start.recorder, pid=pid))
    seen = SeenExit("rank-1", 2**22 - 1, end.monotonic_ns, wait)
    return [
        ReadRecord("a/b", RecordState.INTERRUPTED, "interrupted; cause unknown", start=rank),
        ReadRecord("c/d", RecordState.COMPLETE, "complete", start=start, end=replace(end, exits=(seen,))),
    ]


@pytest.mark.parametrize(
    ("wait", "told"),
    [(Signalled(9), "signal 9 (SIGKILL)"), (Exited(3), "exit code 3"), (None, "how it did is not known")],
)
def test_rr5_a_rank_without_an_end_is_told_with_what_its_launcher_saw(
    wait: Exited | Signalled | None, told: str
) -> None:
    rank, launcher = with_seen_ends(killed_rank_and_launcher(wait))
    assert rank.words == f"interrupted; cause unknown; the launcher's record saw its process end: {told}"
    assert (rank.state, rank.end, launcher.words) == (RecordState.INTERRUPTED, None, "complete")


def test_rr5_the_end_of_another_process_or_of_another_boot_says_nothing(tmp_path: Path) -> None:
    other = killed_rank_and_launcher(Signalled(9), pid=7)
    assert with_seen_ends(other) == tuple(other)
    rank, launcher = killed_rank_and_launcher(Signalled(9))
    assert launcher.start is not None
    assert rank.start is not None
    elsewhere = replace(launcher, start=replace(launcher.start, boot_id="another"))
    assert with_seen_ends([rank, elsewhere])[0] == rank
    later = replace(rank, start=replace(rank.start, monotonic_ns=2**62))
    assert with_seen_ends([later, launcher])[0] == later
    running = replace(rank, state=RecordState.RUNNING, words="running")
    assert with_seen_ends([running, launcher])[0] == running


@pytest.mark.parametrize("step_ns", [3_600_000_000_000, -7_000_000_000])
def test_a_wall_clock_that_moved_is_reported(tmp_path: Path, step_ns: int) -> None:
    start, end = lines(wall_step_ns=step_ns)
    read = read_record(written(tmp_path, encoded(start) + encoded(end)))
    assert read.wall_moved_ns == step_ns
    assert f"{step_ns / 1e9:+.3f} s" in read.remarks[0]


def test_lines_that_do_not_belong_together_are_problems(tmp_path: Path) -> None:
    start, end = lines()
    for data, told in (
        (encoded(end), "no start line"),
        (encoded(start) * 2, "more lines"),
        (encoded(start) + encoded(replace(end, request_id="other")), "two invocations"),
        (b'{"line":"start","format":"x"}\n', "line 1"),
        (encoded(start) + b"null\n", "line 2"),
    ):
        read = read_record(written(tmp_path, data))
        assert any(told in problem for problem in read.problems), (told, read.problems)


@pytest.mark.parametrize("kind", ["file", "link", "dangling"])
def test_what_has_the_name_already_is_refused_and_untouched(tmp_path: Path, kind: str) -> None:
    folder = invocation_folder(tmp_path, IDS)
    folder.mkdir(parents=True)
    other = tmp_path / "other"
    if kind != "dangling":
        other.write_bytes(b"old")
    if kind == "file":
        (folder / "run-record.jsonl").write_bytes(b"old")
    else:
        (folder / "run-record.jsonl").symlink_to(other)
    record = RunRecord(folder, files=Files())
    start, end = lines()
    record.create()
    record.start(start)
    record.end(end)
    assert record.trouble is not None
    assert record.trouble.code == "already_there"
    assert not other.exists() if kind == "dangling" else (folder / "run-record.jsonl").read_bytes() == b"old"


def test_ids_are_names_of_folders_and_never_paths(tmp_path: Path) -> None:
    from paritrace.errors import RequestError

    with pytest.raises(RequestError):
        invocation_folder(tmp_path, replace(IDS, invocation_id="../../etc"))
    assert new_id("request") != new_id("request")


def test_a_recorder_that_was_killed_leaves_an_interrupted_record(tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        shell(tmp_path, f"kill -9 {os.getpid()}; exit 0")
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -9
    read = the_record(tmp_path)
    assert (read.state, read.end) == (RecordState.INTERRUPTED, None)


def test_a_run_with_a_record_verifies_and_a_changed_record_does_not(tmp_path: Path) -> None:
    session = RecordedSession(tmp_path)
    done = shell(tmp_path, "exit 3")
    session.begin_beside(done.record.path)
    session.add(done.record.path)
    session.close()
    assert session.trouble is None
    with open_run(tmp_path) as run:
        assert verify(run).verdict is Finding.INTACT
    data = done.record.path.read_bytes()
    done.record.path.write_bytes(data.replace(b'"code":3', b'"code":0'))
    with open_run(tmp_path) as run:
        assert verify(run).verdict is Finding.CHANGED


def test_a_program_that_failed_is_not_called_completed(tmp_path: Path) -> None:
    from paritrace.runs.catalog import catalog
    from paritrace.runs.pack import pack
    from paritrace.runs.showing import summarise

    root = tmp_path / "run"
    session = RecordedSession(root)
    session.add(shell(root, "exit 3").record.path)
    session.close()
    pack(root, tmp_path / "run.tar.zst")
    assert [line.statuses for line in catalog(tmp_path).runs] == [{"recorded": 1}] * 2
    with open_run(root) as run:
        assert [one.status_words for one in summarise(run).sessions] == ["recorded"]


def test_records_travel_in_an_archive(tmp_path: Path) -> None:
    from paritrace.runs.pack import pack

    root = tmp_path / "run"
    session = RecordedSession(root)
    done = shell(root, "exit 3")
    session.add(done.record.path)
    session.close()
    pack(root, tmp_path / "run.tar.zst")
    with open_run(tmp_path / "run.tar.zst") as run:
        assert verify(run).verdict is Finding.INTACT
        (read,) = read_records(run.folder)
        assert read.end == done.end


def test_a_name_that_is_not_utf8_is_spelt_out(tmp_path: Path) -> None:
    start, _ = lines()
    odd = replace(start, names=replace(NAMES, agent=os.fsdecode(b"caf\xe9")))
    read = read_record(written(tmp_path, encoded(odd)))
    assert read.start is not None
    assert read.start.names.agent == "caf\\udce9"
    assert sys.getfilesystemencoding() == "utf-8"
