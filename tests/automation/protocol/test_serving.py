"""What becomes of an operation, whatever happens in it (AU-1, AU-4, AU-6, AU-17)."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paritrace.automation.protocol.records import Action, FilePath, Operation, Request, Result
from paritrace.automation.protocol.serving import serve
from paritrace.errors import EvidenceError
from paritrace.evidence.digests import sha256_hex


class TrialRequest(Request, frozen=True, kw_only=True, forbid_unknown_fields=True):
    output: FilePath


class TrialResult(Result, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="trial"):
    share: float = 0.5


def trial(run: Callable[[TrialRequest, Operation], Result], place: Path, **fields: object) -> Any:
    """The document of an action that does what `run` does, into `place`/out."""
    action = Action(
        name="trial", summary="A trial.", request=TrialRequest, result=TrialResult, run=run, varying=(), writes=True
    )
    path = place / "request.json"
    path.write_text(json.dumps({"protocol_version": 1, "output": str(place / "out"), **fields}))
    return serve(action, path)


def refuse(*_: object) -> Result:
    raise EvidenceError("it is torn", code="damaged", fix="mend it", details=("line 1", "line 2"))


def names_in(place: Path) -> list[str]:
    return sorted(path.name for path in place.iterdir())


def test_au1_an_error_before_anything_is_written_is_refused(tmp_path: Path) -> None:
    assert trial(refuse, tmp_path) == {
        "protocol_version": 1,
        "ok": False,
        "error": {
            "type": "EvidenceError",
            "code": "damaged",
            "kind": "refused",
            "message": "it is torn",
            "fix": "mend it",
            "details": ["line 1", "line 2"],
        },
    }
    assert names_in(tmp_path) == ["request.json"]


def test_au4_an_error_after_the_output_was_begun_is_failed_and_kept_there(tmp_path: Path) -> None:
    def run(request: TrialRequest, operation: Operation) -> Result:
        operation.claim(request.output)
        return refuse()

    document = trial(run, tmp_path)
    assert document["error"]["kind"] == "failed"
    assert document["error"]["message"] == f"it is torn; {tmp_path / 'out'} is used up, and kept as it is"
    assert names_in(tmp_path / "out") == ["error.json", "operation.json"]
    assert json.loads((tmp_path / "out" / "error.json").read_bytes()) == document
    assert "ended, see error.json" in trial(run, tmp_path)["error"]["message"]


def test_au6_an_output_names_owner_and_request_while_its_operation_runs(tmp_path: Path) -> None:
    def run(request: TrialRequest, operation: Operation) -> Result:
        operation.claim(request.output)
        mark = json.loads((tmp_path / "out" / "operation.json").read_bytes())
        assert mark["request_sha256"] == operation.request_sha256
        assert mark["request_sha256"] == sha256_hex((tmp_path / "request.json").read_bytes())
        assert (mark["action"], mark["owner"]["pid"] > 0) == ("trial", True)
        seen.append(trial(lambda again, other: TrialResult(share=len(other.claim(again.output).name)), tmp_path))
        return TrialResult()

    seen: list[Any] = []
    assert trial(run, tmp_path)["ok"] is True
    assert seen[0]["error"]["code"] == "output_not_fresh"
    assert f"unfinished: process {os.getpid()} of" in seen[0]["error"]["message"]
    assert "is alive" in seen[0]["error"]["message"]


def test_au6_an_output_whose_owner_was_killed_is_told_as_that(tmp_path: Path) -> None:
    def run(request: TrialRequest, operation: Operation) -> Result:
        operation.claim(request.output)
        os.kill(os.getpid(), signal.SIGKILL)
        return TrialResult()

    child = os.fork()
    if child == 0:
        trial(run, tmp_path)
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    assert names_in(tmp_path / "out") == ["operation.json"]
    message = trial(run, tmp_path)["error"]["message"]
    assert f"unfinished: process {child} of" in message
    assert "has ended" in message


def test_au6_whatever_lies_at_the_output_is_left_alone(tmp_path: Path) -> None:
    def run(request: TrialRequest, operation: Operation) -> Result:
        operation.claim(request.output)
        return TrialResult()

    for make in (_a_file, _a_folder, _a_dangling_link, _a_folder_with_another_mark):
        place = tmp_path / make.__name__
        place.mkdir()
        make(place / "out")
        before = names_in(place)
        error = trial(run, place)["error"]
        assert (error["code"], error["kind"]) == ("output_not_fresh", "refused")
        assert names_in(place) == sorted([*before, "request.json"])


def _a_file(path: Path) -> None:
    path.write_text("mine")


def _a_folder(path: Path) -> None:
    path.mkdir()


def _a_dangling_link(path: Path) -> None:
    path.symlink_to("nowhere")


def _a_folder_with_another_mark(path: Path) -> None:
    path.mkdir()
    (path / "operation.json").write_text('{"owner": 3}')


def test_au13_a_name_that_is_no_text_is_spelt_with_escapes(tmp_path: Path) -> None:
    def run(request: TrialRequest, operation: Operation) -> Result:
        operation.claim(request.output)
        name = os.fsdecode(b"run\xff")
        raise EvidenceError(f"{name} is torn", code="damaged", fix=f"mend {name}", details=(name,))

    error = trial(run, tmp_path)["error"]
    assert (error["fix"], error["details"]) == ("mend run\\udcff", ["run\\udcff"])
    assert json.loads((tmp_path / "out" / "error.json").read_bytes())["error"] == error


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (KeyboardInterrupt(), "interrupted"),
        (MemoryError(), "no_memory"),
        (RecursionError(), "internal"),
        (ValueError("secret"), "internal"),
        (FileNotFoundError(2, "No such file", "thing"), "not_found"),
    ],
)
def test_au1_whatever_is_raised_becomes_a_document(tmp_path: Path, raised: BaseException, code: str) -> None:
    def run(*_: object) -> Result:
        raise raised

    document = trial(run, tmp_path)
    assert (document["ok"], document["error"]["code"], document["error"]["kind"]) == (False, code, "refused")
    assert "secret" not in json.dumps(document)

    def begun(request: TrialRequest, operation: Operation) -> Result:
        operation.claim(request.output)
        raise raised

    error = trial(begun, tmp_path)["error"]
    assert (error["code"], error["kind"]) == (code, "failed")


def test_au17_an_action_without_a_request_takes_none_and_one_with_takes_one(tmp_path: Path) -> None:
    plain = Action(name="plain", summary="", request=None, result=TrialResult, run=lambda *_: TrialResult())
    assert serve(plain, None)["ok"] is True
    (tmp_path / "r.json").write_text("{}")
    refused: Any = serve(plain, tmp_path / "r.json")
    assert refused["error"]["code"] == "bad_request"
    taking = Action(name="trial", summary="", request=TrialRequest, result=TrialResult, run=refuse)
    missing: Any = serve(taking, None)
    assert missing["error"]["code"] == "request_not_given"


def test_au1_a_request_of_any_size_is_no_reason_to_read_it(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    with path.open("wb") as file:
        file.truncate((64 << 20) + 1)
    taking = Action(name="trial", summary="", request=TrialRequest, result=TrialResult, run=refuse)
    large: Any = serve(taking, path)
    assert (large["error"]["code"], large["error"]["kind"]) == ("large_request", "refused")
