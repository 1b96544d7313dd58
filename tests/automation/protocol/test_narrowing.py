"""The action `narrow`: what a dry run says and leaves, what is refused, and a real narrowing (AU-9)."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from benchmarks import warm
from paritrace.evidence.gaps import CaptureGap, Gap
from paritrace.runs.request import encode_request
from tests.automation.protocol.asked import error_of, result_of
from tests.automation.requests import request_for
from tests.automation.test_narrow_real import TRAINING


@pytest.fixture
def sides(tmp_path: Path) -> dict[str, object]:
    """Two request files of one training, the second with another epsilon; what a request of the action holds."""
    script = tmp_path / "checkout" / "train.py"
    script.parent.mkdir()
    script.write_text(TRAINING)
    plain = request_for(script, python=warm.python())
    (tmp_path / "a.json").write_bytes(encode_request(plain))
    (tmp_path / "b.json").write_bytes(encode_request(replace(plain, arguments=("--eps", "0.1"))))
    return {
        "output": str(tmp_path / "out"),
        "baseline": str(tmp_path / "a.json"),
        "candidate": str(tmp_path / "b.json"),
        "timeout_seconds": 900,
    }


def test_au9_a_dry_run_says_what_comes_first_and_writes_nothing(tmp_path: Path, sides: dict[str, object]) -> None:
    before = sorted(tmp_path.rglob("*"))
    found = result_of(tmp_path, "narrow", **sides, dry_run=True)
    assert (found["dry_run"], found["narrowed"]) == (True, None)
    assert found["first_round"]["question"] == "at which step do the runs, captured anew, first differ?"
    assert [command[-2:] for command in found["first_round"]["commands"]] == [
        ["--level=digest", "train.py"],
        ["--eps", "0.1"],
    ]
    assert sorted(tmp_path.rglob("*")) == sorted([*before, tmp_path / "request.json"])
    (tmp_path / "out").mkdir()
    assert error_of(tmp_path, "narrow", **sides, dry_run=True)["code"] == "output_not_fresh"


def test_au9_what_cannot_be_run_again_is_refused_before_anything_is_written(
    tmp_path: Path, sides: dict[str, object]
) -> None:
    masked = request_for(tmp_path / "checkout" / "train.py", arguments=Gap(CaptureGap.REDACTED, "1 masked"))
    (tmp_path / "b.json").write_bytes(encode_request(masked))
    error = error_of(tmp_path, "narrow", **sides)
    assert (error["code"], error["kind"]) == ("arguments_unknown", "refused")
    error = error_of(tmp_path, "narrow", **sides | {"candidate": "nowhere"})
    assert (error["code"], error["kind"]) == ("not_found", "refused")
    error = error_of(tmp_path, "narrow", **sides, steps={"first": 2, "end": 2})
    assert (error["code"], error["kind"]) == ("bad_steps", "refused")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_au9_two_programs_are_narrowed_down_to_a_call(tmp_path: Path, sides: dict[str, object]) -> None:
    pytest.importorskip("torch")
    found = result_of(tmp_path, "narrow", **sides)["narrowed"]
    assert (found["ended"], found["place"]["step"], found["place"]["module"]) == ("found", 2, "1")
    assert found["directory"] == str(tmp_path / "out" / "narrowing")
    assert (tmp_path / "out" / "workload.log").read_bytes().startswith(b"$ ")
    assert (tmp_path / "out" / "result.json").exists()


@pytest.mark.slow
def test_au9_a_program_that_leaves_no_run_fails_the_narrowing_and_its_words_are_kept(
    tmp_path: Path, sides: dict[str, object]
) -> None:
    pytest.importorskip("torch")
    text = "import os\nprint('about to die', flush=True)\nos.kill(os.getpid(), 9)\n"
    (tmp_path / "checkout" / "train.py").write_text(text)
    error = error_of(tmp_path, "narrow", **sides)
    assert (error["code"], error["kind"]) == ("rerun_failed", "failed")
    assert b"about to die" in (tmp_path / "out" / "workload.log").read_bytes()
