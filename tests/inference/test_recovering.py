"""A torn tail is refused and named; recover keeps it, notes the loss, and changes no byte of the artifact (IN-6)."""

import hashlib
import shutil
from pathlib import Path

import pytest

from paritrace.errors import EvidenceError, ParitraceError
from paritrace.inference.appending import AppendOptions
from paritrace.inference.artifact import ARTIFACT_NAME, Events, place_of
from paritrace.inference.link_report import link_artifact
from paritrace.inference.records import Loss
from paritrace.inference.recovering import recover
from paritrace.inference.vocabulary import LossReason
from paritrace.runs.verify import Finding
from paritrace.testing.faults import Fault, FaultyFiles, Stopped
from tests.inference.evidence import iteration
from tests.inference.test_appending import QUICK, add, names, run, torn, verified

__all__ = ["run"]
TAIL = b'{"type":"iteration","event_id":"half'


def test_the_torn_tail_is_kept_and_the_artifact_goes_on(run: Path) -> None:
    add(run, iteration("1"))
    before = (torn(run, TAIL) / ARTIFACT_NAME).read_bytes()
    with pytest.raises(EvidenceError) as caught:
        add(run, iteration("2"))
    assert "paritrace infer recover RUN" in caught.value.fix
    report = recover(run, options=AppendOptions(files=QUICK))
    (kept,) = report.kept
    assert (kept.first_byte, kept.num_bytes, kept.reason) == (len(before) - len(TAIL), len(TAIL), LossReason.TORN_TAIL)
    assert (run / "attachments" / kept.sha256).read_bytes() == TAIL
    assert kept.sha256 == hashlib.sha256(TAIL).hexdigest()
    assert (run / ARTIFACT_NAME).read_bytes().startswith(before)
    add(run, iteration("2"))
    assert names(run) == ["1", "2"]
    (loss,) = [one for one in Events(place_of(run)) if isinstance(one, Loss)]
    assert (loss.source, loss.first_byte, loss.num_bytes) == (kept.attachment_id, kept.first_byte, len(TAIL))
    assert verified(run) is Finding.INTACT


def test_a_bad_line_in_the_middle_is_kept_too(run: Path) -> None:
    add(run, iteration("1"))
    torn(run, b"\x00\x00\n")
    with pytest.raises(EvidenceError, match="line 7"):
        link_artifact(run, options=AppendOptions(files=QUICK))
    (kept,) = recover(run, options=AppendOptions(files=QUICK)).kept
    assert (kept.reason, kept.num_bytes) == (LossReason.INVALID, 2)
    add(run, iteration("2"))
    assert names(run) == ["1", "2"]


def test_again_does_nothing(run: Path) -> None:
    torn(add_one(run), TAIL)
    recover(run, options=AppendOptions(files=QUICK))
    then = (run / ARTIFACT_NAME).read_bytes(), (run / "run.json").read_bytes()
    assert recover(run, options=AppendOptions(files=QUICK)).kept == ()
    assert ((run / ARTIFACT_NAME).read_bytes(), (run / "run.json").read_bytes()) == then


def add_one(run: Path) -> Path:
    add(run, iteration("1"))
    return run


@pytest.mark.slow
@pytest.mark.parametrize("fault", [Fault.STOP, Fault.TEAR_AND_STOP, Fault.DONE_THEN_STOP])
def test_a_kill_at_any_operation_of_recovering_loses_nothing(run: Path, tmp_path: Path, fault: Fault) -> None:
    torn(add_one(run), TAIL)
    at = 0
    while True:
        at += 3
        copy = tmp_path / str(at)
        shutil.copytree(run, copy)
        files = FaultyFiles(at=at, fault=fault)
        try:
            recover(copy, options=AppendOptions(files=files))
        except (Stopped, ParitraceError):
            files.faulty.release()
        recover(copy, options=AppendOptions(files=QUICK))
        add(copy, iteration("2"))
        losses = [one for one in Events(place_of(copy)) if isinstance(one, Loss)]
        assert (names(copy), len(losses)) == (["1", "2"], 1)
        assert verified(copy) is Finding.INTACT
        if not files.faulty.happened:
            break
    assert at > 30
