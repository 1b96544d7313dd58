"""Looks are recorded, and what was not planned leaves an anytime-valid interval alone (AT-14, ADR 0051)."""

from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from paritrace import attempts
from paritrace.attempts.declarations import declared_in
from paritrace.attempts.look_ledger import ledger_of, read_looks, record_look
from paritrace.attempts.looks import look_of
from paritrace.attempts.manifest import Manifest, Primary, PrimaryTest
from paritrace.attempts.result import Claim, PairOf
from paritrace.errors import HostError, RequestError
from paritrace.testing.clocks import ManualClock
from paritrace.testing.faults import Fault, FaultyFiles, Stopped
from tests.attempts.written import FAIL, PASS, attempt, manifest

PRIMARY = Primary("a", "b")


def of(num_tasks: int, *, primary: Primary | None = PRIMARY) -> Manifest:
    """One attempt a task; a passes all, b the first alone."""
    listed = [attempt(f"a-t{n}-1", PASS) for n in range(num_tasks)]
    listed += [attempt(f"b-t{n}-1", PASS if n == 0 else FAIL) for n in range(num_tasks)]
    return manifest(listed, primary=primary)


def looked_at(path: Path, content: Manifest) -> PairOf:
    path.write_bytes(msgspec.json.encode(content))
    loaded = attempts.load(path)
    (pair,) = attempts.compare(loaded).pairs
    attempts.record_look(loaded, clock=ManualClock())
    return pair


def test_at_14_a_look_is_recorded_once_however_often_it_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    for _ in range(3):
        assert looked_at(path, of(12)).claim is Claim.ROBUST
    (look,), unreadable = read_looks(path)
    assert (look.num_attempts, unreadable) == (24, 0)


def test_at_14_after_an_unplanned_extension_only_an_anytime_interval_may_claim(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    looked_at(path, of(8))
    extended = looked_at(path, of(12))
    assert extended.claim is Claim.UNDETERMINED
    assert "results were looked at before, with other attempts (16 of them; now 24)" in extended.claim_reasons
    assert looked_at(path, of(12)).claim is Claim.UNDETERMINED  # and it stays so
    assert looked_at(path, of(8)).claim is Claim.UNDETERMINED  # attempts that went are an extension too


def test_at_14_planned_looks_divide_the_level(tmp_path: Path) -> None:
    path, primary = tmp_path / "m.json", Primary("a", "b", planned_looks=(16, 24))
    looked_at(path, of(8, primary=primary))
    pair = looked_at(path, of(12, primary=primary))
    assert (pair.claim, pair.exploratory) == (Claim.ROBUST, False)
    assert "2 looks are planned: each decides at level 0.975" in pair.claim_reasons
    beyond = looked_at(path, of(13, primary=primary))
    assert beyond.claim is Claim.UNDETERMINED


def test_at_14_an_analysis_that_changes_after_a_look_was_not_declared_before_results(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    looked_at(path, of(12))
    pair = looked_at(path, of(12, primary=Primary("a", "b", test=PrimaryTest.MCNEMAR)))
    assert pair.exploratory
    assert "the primary analysis was declared, or changed, after results had been looked at" in pair.claim_reasons


def test_at_14_without_a_primary_analysis_nothing_is_recorded(tmp_path: Path) -> None:
    looked_at(tmp_path / "m.json", of(12, primary=None))
    assert [one.name for one in tmp_path.iterdir()] == ["m.json"]


@pytest.mark.parametrize("line", [b'{"format": "paritrace-att', b"[]\n", b"\xff\n", b'{"format":"x"}\n'])
def test_at_14_a_line_that_cannot_be_read_may_be_a_look_at_other_attempts(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "m.json"
    ledger_of(path).write_bytes(line)
    assert looked_at(path, of(12)).claim is Claim.UNDETERMINED
    looks, unreadable = read_looks(path)  # the next look stands on a line of its own
    assert (len(looks), unreadable) == (1, 1)


def test_a_ledger_beyond_any_number_of_looks_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    with ledger_of(path).open("wb") as stream:
        stream.truncate(17 << 20)
    with pytest.raises(RequestError):
        looked_at(path, of(12))


@pytest.mark.parametrize("fault", Fault)
def test_p4_a_fault_at_any_operation_leaves_no_look_or_a_whole_or_a_torn_one(tmp_path: Path, fault: Fault) -> None:
    path = tmp_path / "m.json"
    path.write_bytes(msgspec.json.encode(of(12)))
    loaded = attempts.load(path)
    look = look_of(loaded.head, loaded.raw, manifest_sha256=loaded.sha256, unix_ns=1)
    assert look is not None
    for number in range(1, 50):
        files = FaultyFiles(at=number, fault=fault)
        with suppress(HostError, Stopped):
            record_look(path, look, files=files)
        looks, unreadable = read_looks(path)
        assert (len(looks), unreadable) in ((0, 0), (0, 1), (1, 0))
        record_look(path, look)  # the next start comes through, on a line of its own
        assert read_looks(path)[0] == (look,)
        ledger_of(path).unlink()


def test_what_was_declared_is_read_from_any_manifest_and_from_nothing_else() -> None:
    found = declared_in(msgspec.json.encode(of(2)))
    assert found is not None
    assert (found.primary, found.names()) == (PRIMARY, ("primary",))
    assert declared_in(b"") is None
    assert declared_in(b'{"primary": 3}') is None
