"""Files that change together, and appends under an intent: all old or all new after any kill (EV-9, EV-11, EV-19)."""

import errno
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from paritrace.errors import EvidenceError, HostError, Outcome, ParitraceError
from paritrace.evidence.digests import sha256_hex
from paritrace.files import Files
from paritrace.process.identity import own_identity
from paritrace.runs.committed import append_records, check_committed, committed_chunks, read_index
from paritrace.runs.intent_records import Recovery
from paritrace.runs.intents import INTENT_NAME, LOCK_NAME, MoreContent, NewContent, change_together, changing
from paritrace.testing.faults import Fault, FaultyFiles, Stopped

OLD = {"one": b"old one", "two": b"old two", "log": b"1\n"}
NEW = {"one": b"new one", "two": b"new two!", "three": b"made", "log": b"1\n2\n3\n"}
QUICK: Files = FaultyFiles(at=0, fault=Fault.STOP)


def put(folder: Path) -> Path:
    folder.mkdir()
    for name, data in OLD.items():
        (folder / name).write_bytes(data)
    return folder


def visible(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(".")}


def change(folder: Path, files: Files) -> Recovery:
    with changing(folder, own_identity(), files=files) as found:
        if visible(folder) == OLD:
            make(folder, files)
    return found


def make(folder: Path, files: Files) -> None:
    replaced = [NewContent(name, sha256_hex(OLD[name]), NEW[name]) for name in ("one", "two")]
    made, more = NewContent("three", None, NEW["three"]), MoreContent("log", 2, b"2\n3\n")
    change_together(folder, (*replaced, made, more), files=files)


def test_all_change(tmp_path: Path) -> None:
    folder = put(tmp_path / "x")
    assert change(folder, QUICK) is Recovery.NOTHING
    assert visible(folder) == NEW
    assert {path.name for path in folder.iterdir()} == {*NEW, LOCK_NAME}


@pytest.mark.slow
@pytest.mark.parametrize("fault", [Fault.STOP, Fault.DONE_THEN_STOP, Fault.TEAR_AND_STOP, Fault.FAIL])
def test_a_kill_at_any_operation_leaves_all_old_or_all_new_for_the_next_opener(tmp_path: Path, fault: Fault) -> None:
    at, found = 0, set()
    while True:
        at += 2
        folder = put(tmp_path / str(at))
        files = FaultyFiles(at=at, fault=fault)
        try:
            change(folder, files)
        except (Stopped, ParitraceError):
            files.faulty.release()
        with changing(folder, own_identity(), files=QUICK) as recovery:
            found.add(recovery)
            assert visible(folder) in (OLD, NEW)
        change(folder, QUICK)
        assert visible(folder) == NEW
        assert not (folder / INTENT_NAME).exists()
        if not files.faulty.happened:
            break
    assert found == {Recovery.NOTHING, Recovery.ROLLED_BACK, Recovery.ROLLED_FORWARD}


def test_a_full_disk_is_refused_before_the_promise_and_failed_after_it(tmp_path: Path) -> None:
    """*Refused* says that nothing changed; what was promised is finished by the next opener (P8)."""
    told: set[tuple[str, Outcome, bool]] = set()
    for at in range(1, 200, 3):
        folder = put(tmp_path / str(at))
        files = FaultyFiles(at=at, fault=Fault.FAIL, number=errno.ENOSPC)
        with changing(folder, own_identity(), files=QUICK):
            try:
                make(folder, files)
            except HostError as error:
                found = (error.code, error.outcome, visible(folder) == OLD and not (folder / INTENT_NAME).exists())
                told.add(found)
        if not files.faulty.happened:
            break
    assert told - {("disk_full", Outcome.FAILED, True)} == {
        ("disk_full", Outcome.REFUSED, True),
        ("disk_full", Outcome.FAILED, False),
    }


def test_a_lost_update_is_refused(tmp_path: Path) -> None:
    folder = put(tmp_path / "x")
    (folder / "one").write_bytes(b"changed by somebody else")
    with changing(folder, own_identity(), files=QUICK), pytest.raises(EvidenceError) as caught:
        change_together(folder, [NewContent("one", sha256_hex(OLD["one"]), b"mine")], files=QUICK)
    assert caught.value.code == "changed_meanwhile"
    assert (folder / "one").read_bytes() == b"changed by somebody else"


def promised(folder: Path) -> None:
    """A change that was killed just after its promise."""
    for at in range(1, 100):
        files = FaultyFiles(at=at, fault=Fault.STOP)
        try:
            change(folder, files)
        except Stopped:
            files.faulty.release()
        if (folder / INTENT_NAME).exists() and visible(folder) == OLD:
            return
    raise AssertionError("no kill left a promise and nothing else")


def test_a_file_that_somebody_changed_after_the_promise_is_a_conflict(tmp_path: Path) -> None:
    folder = put(tmp_path / "x")
    promised(folder)
    (folder / "two").write_bytes(b"changed by somebody else")
    with pytest.raises(EvidenceError) as caught:
        change(folder, QUICK)
    assert caught.value.code == "intent_conflict"
    assert visible(folder) == OLD | {"two": b"changed by somebody else"}


def test_a_promise_whose_bytes_are_damaged_is_rolled_back(tmp_path: Path) -> None:
    folder = put(tmp_path / "x")
    promised(folder)
    (folder / ".intent-staged-1").write_bytes(b"da")
    with changing(folder, own_identity(), files=QUICK) as found:
        assert (found, visible(folder)) == (Recovery.ROLLED_BACK, OLD)


def test_a_lock_of_another_host_is_refused_and_one_of_a_dead_process_is_not(tmp_path: Path) -> None:
    folder = put(tmp_path / "x")
    gone = replace(own_identity(), pid=2**22, start_ticks=1)
    (folder / LOCK_NAME).write_bytes(msgspec.json.encode(gone))
    change(folder, QUICK)
    (folder / LOCK_NAME).write_bytes(msgspec.json.encode(replace(gone, host="elsewhere", boot_id="another")))
    with pytest.raises(HostError) as caught:
        change(folder, QUICK)
    assert caught.value.code == "lock_of_another_host"


def append(folder: Path, lines: bytes, files: Files = QUICK, **envelope: bytes) -> None:
    with changing(folder, own_identity(), files=files):
        together = [NewContent(name, old_digest(folder / name), data) for name, data in envelope.items()]
        append_records(folder, "log", lines, together=together, files=files)


def old_digest(path: Path) -> str | None:
    return sha256_hex(path.read_bytes()) if path.exists() else None


def committed(folder: Path) -> bytes:
    return b"".join(committed_chunks(folder, "log"))


def test_appends_and_the_envelope_change_together(tmp_path: Path) -> None:
    folder = put(tmp_path / "x")
    append(folder, b"2\n", one=b"with 2")
    append(folder, b"3\n", one=b"with 3")
    assert (committed(folder), visible(folder)["one"]) == (b"1\n2\n3\n", b"with 3")
    assert check_committed(folder, "log")
    index = read_index(folder, "log")
    assert index is not None
    assert index.cuts == (2, 4, 6)
    (folder / "log").write_bytes(b"1\n9\n3\n")
    assert not check_committed(folder, "log")


def test_bytes_that_nobody_committed_become_a_loss_and_stay(tmp_path: Path) -> None:
    folder = put(tmp_path / "x")
    append(folder, b"2\n")
    with (folder / "log").open("ab") as file:
        file.write(b"half of a re")
    assert committed(folder) == b"1\n2\n"
    append(folder, b"3\n")
    assert committed(folder) == b"1\n2\n\n3\n"
    assert (folder / "log").read_bytes() == b"1\n2\nhalf of a re\n3\n"
    index = read_index(folder, "log")
    assert index is not None
    assert [(loss.offset, loss.length) for loss in index.losses] == [(4, 12)]
    assert check_committed(folder, "log")


def test_an_artifact_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    folder = put(tmp_path / "x")
    append(folder, b"2\n")
    (folder / "log").write_bytes(b"1\n")
    with pytest.raises(EvidenceError) as caught:
        append(folder, b"3\n")
    assert caught.value.code == "artifact_cut_off"


@pytest.mark.slow
@pytest.mark.parametrize("fault", [Fault.STOP, Fault.TEAR_AND_STOP, Fault.DONE_THEN_STOP])
def test_a_kill_at_any_operation_of_an_append_loses_and_doubles_nothing(tmp_path: Path, fault: Fault) -> None:
    at = 0
    while True:
        at += 3
        folder = put(tmp_path / str(at))
        append(folder, b"2\n", one=b"with 2")
        files = FaultyFiles(at=at, fault=fault)
        try:
            append(folder, b"3\n", files, one=b"with 3")
        except Stopped:
            files.faulty.release()
        with changing(folder, own_identity(), files=QUICK):
            assert (committed(folder), visible(folder)["one"]) in (
                (b"1\n2\n", b"with 2"),
                (b"1\n2\n3\n", b"with 3"),
            )
        append(folder, b"4\n")
        assert committed(folder) in (b"1\n2\n4\n", b"1\n2\n3\n4\n")
        assert check_committed(folder, "log")
        if not files.faulty.happened:
            break
    assert at > 20


def test_an_append_hashes_its_own_bytes_and_not_the_old_ones(tmp_path: Path) -> None:
    """The cost of PF-14, counted in bytes read: a hundred times more old bytes make no difference."""
    read = []
    for size in (1_000, 100_000):
        folder = tmp_path / str(size)
        folder.mkdir()
        (folder / "log").write_bytes(b"x" * (size - 1) + b"\n")
        append(folder, b"2\n")
        counting = Counting()
        append(folder, b"3\n", counting)
        read.append(counting.read_bytes)
    assert abs(read[1] - read[0]) < 100


class Counting(FaultyFiles):
    """Counts what is read of the artifact and its index."""

    def __init__(self) -> None:
        super().__init__(at=0, fault=Fault.STOP)
        self.read_bytes = 0
        plain = self.faulty.read

        def counted(fd: int, num_bytes: int) -> bytes:
            data = plain(fd, num_bytes)
            self.read_bytes += len(data)
            return data

        vars(self.faulty)["read"] = counted
