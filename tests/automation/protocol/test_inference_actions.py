"""The actions on inference evidence give the documents of the commands (AU-9, IN-8, IN-9, IN-17)."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from paritrace.automation.protocol.schemas import result_schema
from paritrace.automation.protocol.table import load_action
from paritrace.cli.entry import paritrace
from tests.automation.protocol.asked import error_of, result_of
from tests.inference.comparison.arms import arm

SCALES = (1.0, 1.02, 0.98, 1.01)


def printed(*words: object) -> object:
    """What the command line prints as JSON."""
    told = ["infer", *map(str, words), "--json"]
    return json.loads(CliRunner().invoke(paritrace, told, catch_exceptions=False, standalone_mode=False).stdout)


@pytest.mark.parametrize(("action", "field"), [("infer-show", "shown"), ("infer-account", "account")])
def test_au9_an_artifact_is_shown_and_added_up(tmp_path: Path, action: str, field: str) -> None:
    run = next(path.parent for path in sorted(arm(tmp_path, "base", SCALES[:1]).rglob("inference.jsonl")))
    found = result_of(tmp_path, action, run=str(run))
    assert found[field] == printed(action.removeprefix("infer-"), run)
    Draft202012Validator(result_schema(load_action(action))).validate(found)
    error = error_of(tmp_path, action, run=str(tmp_path / "nowhere"))
    assert error["kind"] == "refused"


def test_au9_two_arms_are_compared(tmp_path: Path) -> None:
    pytest.importorskip("scipy")
    base, cand = arm(tmp_path, "base", SCALES), arm(tmp_path, "cand", SCALES, changed={"engine.config": "b"})
    asked = {"baseline": str(base), "candidate": str(cand), "treatments": ["engine.config"]}
    found = result_of(tmp_path, "infer-compare", **asked, gates=["latency.p50<=1.5"])
    words = ("compare", base, cand, "--treatment", "engine.config", "--gate", "latency.p50<=1.5")
    assert found["comparison"] == printed(*words)
    Draft202012Validator(result_schema(load_action("infer-compare"))).validate(found)
    assert error_of(tmp_path, "infer-compare", **asked, gates=["nonsense"])["kind"] == "refused"
