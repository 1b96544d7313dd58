"""`python -m paritrace.automation` as another program starts it: one document on stdout, the status (AU-1, AU-17)."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from paritrace.automation import __main__ as entry
from paritrace.automation.protocol.schemas import request_schema, result_schema, schema_sha256
from paritrace.automation.protocol.serving import serve
from paritrace.automation.protocol.table import ACTIONS, load_action

SECONDS = 120  # far more than a start takes


def started(*arguments: str, code: str = "") -> subprocess.CompletedProcess[str]:
    command = ["-c", code] if code else ["-m", "paritrace.automation"]
    return subprocess.run(
        [sys.executable, *command, *arguments], capture_output=True, text=True, timeout=SECONDS, check=False
    )


def test_au3_capabilities_takes_no_request_and_names_every_action_with_its_schemas() -> None:
    document: Any = serve(load_action("capabilities"), None)
    assert document["ok"] is True
    told = {one["name"]: one for one in document["result"]["actions"]}
    assert list(told) == list(ACTIONS)
    for name, one in told.items():
        action = load_action(name)
        schema = request_schema(action)
        assert one["request_schema_sha256"] == (None if schema is None else schema_sha256(schema))
        assert one["result_schema_sha256"] == schema_sha256(result_schema(action))
    schemas: Any = entry.schemas_document()["result"]
    named = {one[f"{part}_schema"] for one in told.values() for part in ("request", "result")} - {None}
    assert named == schemas["schemas"].keys()
    assert len(document["result"]["limits"]) == 4
    states = {one["name"]: (one["state"], one["reason"]) for one in document["result"]["observing"]}
    assert {"torch", "cuda", "triton"} <= states.keys()
    assert all((state == "enabled") == (reason == "") for state, reason in states.values())


def test_au1_a_refusal_is_one_document_and_status_2(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text('{"protocol_version": 1, "output": "out"}')
    done = started("compare", "--request", str(path))
    assert (done.returncode, done.stderr) == (2, "")
    assert [one["at"] for one in json.loads(done.stdout)["error"]["problems"]] == ["/baseline", "/candidate"]


NOISY = """
import os, signal, sys
from paritrace.automation import __main__ as entry
from paritrace.automation.protocol.records import Action, Result

class Done(Result, frozen=True, kw_only=True, tag="done"):
    pass

def run(request, operation):
    print("noise from Python", flush=True)
    os.system("echo noise from a child")
    os.write(1, b"noise from C\\n")
    if "--die" in sys.argv:
        sys.argv.remove("--die")
        os.kill(os.getpid(), signal.SIGTERM)
        signal.pause()
    return Done()

noisy = Action(name="capabilities", summary="", request=None, result=Done, run=run)
entry.load_action = lambda name: noisy
entry.tools.main(args=["capabilities"])
"""


def test_au1_what_else_is_written_to_stdout_goes_to_stderr() -> None:
    done = started(code=NOISY)
    assert json.loads(done.stdout)["ok"] is True
    assert done.stderr.splitlines() == ["noise from Python", "noise from a child", "noise from C"]


def test_au1_an_operation_that_is_ended_says_so_in_its_document() -> None:
    done = started("--die", code=NOISY)
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["code"] == "interrupted"


def test_au1_a_reader_that_went_away_is_no_traceback() -> None:
    read, write = os.pipe()
    os.close(read)
    process = subprocess.Popen(
        [sys.executable, "-m", "paritrace.automation", "check"], stdout=write, stderr=subprocess.PIPE
    )
    os.close(write)
    _, stderr = process.communicate(timeout=SECONDS)
    assert (process.returncode, stderr) == (entry.READER_GONE, b"")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["no-such-action"],
        ["compare", "--no-such"],
        ["compare", "--functions"],
        ["capabilities", "--functions", "--schemas"],
        ["check", "a", "b"],
    ],
)
def test_au1_errors_of_the_command_line_are_as_usual_for_one(arguments: list[str]) -> None:
    done = CliRunner().invoke(entry.tools, arguments)
    assert done.exit_code == 2
    assert "Usage: " in done.output


def test_au14_functions_are_made_of_the_types_of_the_requests() -> None:
    document: Any = entry.functions_document()
    functions = {one["name"]: one for one in document["result"]["functions"]}
    assert len(functions) == len(ACTIONS)
    for name in ACTIONS:
        parameters = functions[f"paritrace_{name.replace('-', '_')}"]["parameters"]
        assert (parameters["type"], parameters["additionalProperties"]) == ("object", False)
        request = load_action(name).request
        fields = () if request is None else request.__struct_fields__
        assert [*parameters["properties"]] == [field for field in fields if field != "protocol_version"]
        assert "protocol_version" not in parameters.get("required", ())
