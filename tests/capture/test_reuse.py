"""A fingerprint that is taken over holds: recomputed, none is stale (CA-32), and no fault of ours is hidden (P6)."""

from pathlib import Path

import pytest
import torch

from benchmarks.same_bits.table import bits_of
from benchmarks.same_bits.workloads import WORKLOADS
from paritrace.capture.session import Capture, Workload, begin
from paritrace.capture.settings import CaptureSettings
from paritrace.evidence.calls import Call, How, Level
from paritrace.evidence.gaps import CountedGap
from paritrace.evidence.journal import Loss
from paritrace.runs.envelope import SessionStatus
from paritrace.runs.reading import open_run

LEVELS = {
    "op": frozenset({Level.DIGEST, Level.OP}),
    "module and op": frozenset({Level.DIGEST, Level.MODULE, Level.OP}),
}
# Gaps that these trainings have by their nature; anything else, capture_error above all, is a fault.
BY_NATURE = {
    CountedGap.LINK_AMBIGUOUS,
    CountedGap.FORKED_CHILD_NOT_COVERED,
    CountedGap.NOT_OBSERVABLE_COMPILED,
    CountedGap.THREAD_NOT_COVERED,
}
WITHOUT_REUSE = {"compiled model"}  # one region per pass: nothing is looked at twice


def captured(name: str, run: Path, levels: frozenset[Level]) -> Capture:
    """The training under a capture that recomputes whatever it takes over."""
    settings = CaptureSettings(levels=levels, steps=(0, 1000), check_reuse=True, diff=False)
    capture = begin(run, settings, workload=Workload(root=run.parent, main=None, argv=()))
    try:
        bits_of(WORKLOADS[name])
    finally:
        capture.end(SessionStatus.COMPLETED, metadata={})
    return capture


@pytest.mark.slow
@pytest.mark.parametrize("levels", LEVELS.values(), ids=LEVELS)
@pytest.mark.parametrize("name", WORKLOADS)
def test_no_reuse_is_stale_and_no_capture_error(name: str, levels: frozenset[Level], tmp_path: Path) -> None:
    torch.set_num_threads(1)
    capture = captured(name, tmp_path / "run", levels)
    assert capture.observer is not None
    reused, stale = capture.observer.reuse
    assert stale == 0
    assert reused > 0 or name in WITHOUT_REUSE
    assert set(capture.gaps) <= BY_NATURE, capture.gaps
    assert capture.failure is None
    with open_run(tmp_path / "run") as run:
        (session,) = run.sessions
        records = list(run.records(session.session_id))
    assert not [record for record in records if isinstance(record, Loss)]
    calls = [record for record in records if isinstance(record, Call)]
    inherited = [slot for call in calls for slot in (*call.inputs, *call.outputs) if slot.how is How.INHERITED]
    assert len(inherited) <= reused
