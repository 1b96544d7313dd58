"""The files that a real session leaves behind are as their published schemas say (EV-1, SE-8, SE-12, SE-18, SE-23)."""

import json
import os
import signal
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from jsonschema import Draft202012Validator

from paritrace import Session
from paritrace.cli.schema import schema_text
from paritrace.session.opening import read_session
from paritrace.session.states import RankState
from tests.session.coordinator.test_serving import has_ended, until

RESIDENT = "tests.session.rank.workloads:Resident"
SCHEMAS = {
    "session.json": "session",
    "configs/*.json": "session-config",
    "checkpoints/*/manifest.json": "session-checkpoint",
    "autosave/*/manifest.json": "session-checkpoint",
    "previews/*/preview.json": "session-preview",
    "inputs/*.json": "session-inputs",
    "failures/*.json": "session-failure",
}


@pytest.mark.slow
def test_every_json_file_of_a_session_has_a_schema_and_fits_it(tmp_path: Path) -> None:
    with Session.start(tmp_path / "session", RESIDENT, ranks=2) as session:
        session.preview()
        session.inputs({"text": "second"})
        session.run(3, wait=True)
        session.configure({"add": 2.0})
        session.save("here")
        session.preview({"later": True})
        session.run(1, wait=True, autosave=False)
        os.kill(session.status().ranks[1].pid or 0, signal.SIGKILL)
        until(lambda: session.status().state is RankState.ERROR and session.status().failure_report is not None)
        directory = session.directory
        kept = session.metrics()
        session.close()
    owner = read_session(directory).owner.pid
    until(lambda: has_ended(owner))
    found = Counter[str]()
    for path in directory.rglob("*.json"):
        if "scratch" not in path.parts:
            pattern = next(one for one in SCHEMAS if path.relative_to(directory).match(one))
            Draft202012Validator(json.loads(schema_text(SCHEMAS[pattern]))).validate(json.loads(path.read_bytes()))
            found[pattern] += 1
    assert found.keys() == SCHEMAS.keys()
    lines = (directory / "metrics.jsonl").read_bytes().splitlines()
    for line in lines:
        Draft202012Validator(json.loads(schema_text("session-samples"))).validate(json.loads(line))
    Draft202012Validator(json.loads(schema_text("session-metrics"))).validate(json.loads(msgspec.json.encode(kept)))
    assert [(one.step, one.config_revision) for one in kept.samples][-2:] == [(2, 0), (3, 1)], "the end of each run"
    assert len({one.epoch for one in kept.samples}) == 2
    assert (found["previews/*/preview.json"], found["inputs/*.json"], found["configs/*.json"]) == (2, 2, 2)
