"""The actions on a resident session: looked at, run and stopped as by the command line (AU-9, SE-5, SE-6, SE-7)."""

import time
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from paritrace import Session
from paritrace.automation.protocol.schemas import result_schema
from paritrace.automation.protocol.table import load_action
from paritrace.process.identity import has_ended
from paritrace.session.opening import read_session
from tests.automation.protocol.asked import error_of, result_of
from tests.session.coordinator.workloads import SMALL


@pytest.mark.slow
def test_au9_a_session_is_run_stopped_and_looked_at(tmp_path: Path) -> None:
    directory = str(tmp_path / "session")
    with Session.start(directory, SMALL, ranks=2) as session:

        def asked(command_id: str, kind: str, **more: Any) -> dict[str, Any]:
            return {"directory": directory, "command_id": command_id, "kind": kind, **more}

        five = asked("a", "run", body={"steps": 5}, wait=True)
        ended = result_of(tmp_path, "session-command", **five)
        assert (ended["reply"]["result"], ended["reply"]["step"]) == ("applied", 5)
        assert result_of(tmp_path, "session-command", **five)["reply"]["step"] == 5
        result_of(tmp_path, "session-command", **asked("b", "run", body={"steps": 1_000_000}))
        stopped = result_of(tmp_path, "session-command", **asked("c", "stop"))
        shown = result_of(tmp_path, "session-status", directory=directory)
        assert shown["status"]["step"] == stopped["reply"]["step"]
        for action, found in (("session-command", ended), ("session-status", shown)):
            Draft202012Validator(result_schema(load_action(action))).validate(found)
        tried = asked("e", "configure", body={"values": {"rate": 2.0}})
        would = result_of(tmp_path, "session-command", **tried, dry_run=True)
        assert (would["reply"], would["would"]["would"]) == (None, "begin")
        done = result_of(tmp_path, "session-command", **tried)
        assert (done["reply"]["result"], done["would"]) == ("applied", None)
        unknown = error_of(tmp_path, "session-command", **asked("f", "stop", body={"now": 1}))
        assert unknown["code"] == "bad_command"
        taken = error_of(tmp_path, "session-command", **asked("a", "run", body={"steps": 6}))
        assert (taken["code"], taken["kind"]) == ("command_id_taken", "refused")
        fenced = asked("d", "run", body={"steps": 1}, fences={"step": 0})
        assert error_of(tmp_path, "session-command", **fenced)["code"] == "not_applied"
        session.close()
        owner = read_session(Path(directory)).owner
    deadline = time.monotonic() + 60
    while not has_ended(owner):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    gone = error_of(tmp_path, "session-status", directory=directory)
    assert (gone["code"], gone["kind"]) == ("coordinator_gone", "refused")


def test_au9_a_folder_of_other_things_is_no_session(tmp_path: Path) -> None:
    assert error_of(tmp_path, "session-status", directory=str(tmp_path))["code"] == "not_a_session"
