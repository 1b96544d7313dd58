"""The store of whole tensors on disks that fail, tear or stop at every operation (CA-9, P4, P6)."""

import errno
import hashlib
from collections import Counter
from pathlib import Path

import pytest

from paritrace.capture import tensor_store
from paritrace.capture.tensor_store import TensorStore
from paritrace.evidence.gaps import CaptureGap, CountedGap, Gap
from paritrace.files import LOCAL, Files
from paritrace.runs.opening import begin_session
from paritrace.runs.reading import open_run
from paritrace.runs.verify import Finding, verify
from paritrace.testing.clocks import ManualClock
from paritrace.testing.faults import ErrnoFiles, Fault, FaultyFiles, Stopped
from tests.runs.making import another_process, request

CONTENTS = (b"a" * 64, b"b" * 32, b"", b"a" * 64)


def store_in(run_dir: Path, files: Files, told: Counter[str], *, max_bytes: int = 1 << 20) -> TensorStore:
    session = begin_session(run_dir, request(process=another_process()), files=LOCAL, clock=ManualClock())
    return TensorStore(session, files=files, max_bytes=max_bytes, count=lambda reason, _: told.update([reason.value]))


def keep_all(store: TensorStore) -> list[str | Gap[CaptureGap]]:
    return [store.keep(data, dtype="uint8", shape=(len(data),), itemsize=1, name="x") for data in CONTENTS]


def require_whole(run_dir: Path) -> set[str]:
    """Every visible file bears the digest of its bytes."""
    folder = run_dir / "tensors"
    found = [] if not folder.is_dir() else [path for path in folder.iterdir() if not path.name.startswith(".")]
    for path in found:
        assert hashlib.sha256(path.read_bytes()).hexdigest() == path.stem
    return {path.stem for path in found}


def test_every_failure_is_a_gap_and_leaves_no_torn_file(tmp_path: Path) -> None:
    num_faults = 0
    for fault in (Fault.FAIL, Fault.TEAR):
        for at in range(1, 200):
            run_dir, told = tmp_path / f"{fault}-{at}", Counter[str]()
            files = FaultyFiles(at=at, fault=fault)
            store = store_in(run_dir, files, told)
            kept = keep_all(store)
            whole = require_whole(run_dir)
            assert {digest for digest in kept if isinstance(digest, str)} <= whole
            files.faulty.release()
            if not files.faulty.happened:
                assert told == {}
                break
            num_faults += 1
            gaps = [gap for gap in kept if isinstance(gap, Gap)]
            assert store.failure is not None
            assert gaps
            assert {gap.gap for gap in gaps} == {CaptureGap.CAPTURE_ERROR}
            assert told == {CountedGap.DISK_FULL.value: len(gaps)}
    assert num_faults > 20


def test_killed_at_every_operation_the_names_there_are_right(tmp_path: Path) -> None:
    num_kills = 0
    for fault in (Fault.STOP, Fault.TEAR_AND_STOP, Fault.DONE_THEN_STOP):
        for at in range(1, 200):
            run_dir = tmp_path / f"{fault}-{at}"
            files = FaultyFiles(at=at, fault=fault)
            store = store_in(run_dir, files, Counter())
            try:
                keep_all(store)
            except Stopped:
                num_kills += 1
                files.faulty.release()
                require_whole(run_dir)
                with open_run(run_dir) as run:
                    assert verify(run).verdict is not Finding.CHANGED
                continue
            break
    assert num_kills > 30


def test_a_full_disk_is_said_once_and_not_tried_again(tmp_path: Path) -> None:
    told = Counter[str]()
    store = store_in(tmp_path / "run", ErrnoFiles(operation="write", number=errno.ENOSPC), told)

    kept = keep_all(store)

    assert kept == [Gap(CaptureGap.CAPTURE_ERROR, "disk_full")] * 4
    assert store.failure is not None
    assert store.failure.code == "disk_full"
    assert told == {"disk_full": 4}


def test_the_budget_counts_what_is_written_and_headers_too(tmp_path: Path) -> None:
    told = Counter[str]()
    store = store_in(tmp_path / "run", LOCAL, told, max_bytes=230)

    first, second, empty, again = keep_all(store)

    assert isinstance(first, str)
    assert again == first, "what is stored is no further cost"
    assert isinstance(second, Gap)
    assert second.gap is CaptureGap.OVER_BUDGET
    assert isinstance(empty, str)
    assert store.num_bytes <= 230
    assert told == {"over_budget": 1}


def test_the_number_of_files_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_store, "MAX_FILES", 1)
    kept = keep_all(store_in(tmp_path / "run", LOCAL, Counter()))
    assert [isinstance(item, Gap) for item in kept] == [False, True, True, False]


def test_two_ranks_share_a_file(tmp_path: Path) -> None:
    session = begin_session(tmp_path / "run", request(process=another_process()), files=LOCAL, clock=ManualClock())
    broken = ErrnoFiles(operation="write", number=errno.EIO)
    first, second = (
        TensorStore(session, files=files, max_bytes=1 << 20, count=lambda _, __: None) for files in (LOCAL, broken)
    )

    assert keep_all(first) == keep_all(second), "it is there already, so nothing is written"
    assert first.num_bytes > 0
    assert second.num_bytes == 0
