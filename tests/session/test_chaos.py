"""A rehearsal on real processes: every promise is measured, and one that is broken is said to be (SE-19)."""

import os
import signal
from pathlib import Path

import pytest

from paritrace.errors import HostError
from paritrace.process.logged import ending_signals
from paritrace.session.chaos.injuries import PROMISES, Injury
from paritrace.session.chaos.patient import Patient, is_gone
from paritrace.session.chaos.rehearsing import Plan, rehearse
from paritrace.session.coordinator.opening_request import Opening

pytestmark = pytest.mark.slow
WORKLOAD = "tests.cases.resident_layers:Layers"


def test_se19_every_injury_is_dealt_and_every_promise_of_it_measured(tmp_path: Path) -> None:
    told: list[str] = []
    found = rehearse(Plan(Opening(str(tmp_path), WORKLOAD, ranks=2), num_stops=10), tmp_path, tell=told.append)
    assert [(one.injury, one.promise) for one in found.outcomes] == [
        (injury, promise) for injury in Injury for promise in PROMISES[injury]
    ]
    assert found.kept, [one for one in found.outcomes if not one.kept]
    assert found.skipped == ()
    assert len(told) == len(Injury)
    assert {path.name for path in tmp_path.iterdir()} == {"unhurt", *(one.value for one in Injury)}


def test_se19_a_promise_that_is_not_kept_is_said(tmp_path: Path) -> None:
    plan = Plan(
        Opening(str(tmp_path), WORKLOAD, ranks=2, arguments={"leave_out_on": 1}), injuries=(Injury.KILL_IN_LOAD,)
    )
    found = rehearse(plan, tmp_path, tell=lambda _: None)
    assert not found.kept
    assert [one.promise.value for one in found.outcomes if not one.kept][-1] == "loads_again"


def test_se19_a_workload_that_does_not_start_leaves_no_coordinator(tmp_path: Path) -> None:
    patient = Patient(Opening(str(tmp_path / "S"), "nothing:Nothing", ranks=1))
    with pytest.raises(HostError, match="the workload does not start"), patient:
        raise AssertionError("it has started")
    assert patient.seconds_until(lambda: is_gone(patient.coordinator()), most=60.0) is not None


def test_se19_a_rehearsal_that_is_told_to_end_leaves_no_session_behind(tmp_path: Path) -> None:
    patient = Patient(Opening(str(tmp_path / "S"), WORKLOAD, ranks=1))
    with pytest.raises(SystemExit), ending_signals(), patient:
        _told_to_end_while(patient)
    assert patient.seconds_until(lambda: is_gone(patient.coordinator()), most=5.0) is not None
    assert patient.all_gone()


def _told_to_end_while(patient: Patient) -> None:
    patient.take_steps()
    os.kill(os.getpid(), signal.SIGTERM)
    patient.seconds_until(lambda: False, most=60.0)
