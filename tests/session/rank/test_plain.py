"""Whatever a workload says, the control thread can write it: nothing of it makes a rank deaf (SE-7, SE-13)."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from paritrace.session.commands import Kind
from paritrace.session.messages import Beat, Ended, Halt, Verdict
from paritrace.session.rank.plain import MAX_METRICS, MAX_TEXT, plain_metrics, plain_text
from paritrace.session.rank.serving import ENDED_OTHERWISE
from paritrace.session.states import RankState
from paritrace.session.workload import RUN_BOUNDARY, ConfigField, Context, InputSet, Plan
from tests.session.rank.lines import Played


class Wordless(Exception):  # noqa: N818  a name for a test
    def __str__(self) -> str:
        raise RuntimeError("no words")


def _raises(error: BaseException) -> Callable[[], Any]:
    def raising() -> Any:
        raise error

    return raising


SAYS: Mapping[str, Callable[[], Any]] = {
    "wordless": _raises(Wordless()),
    "half a surrogate pair": _raises(ValueError("\udcff\x00 and a second\nline")),
    "exit": _raises(SystemExit(0)),
    "interrupt": _raises(KeyboardInterrupt()),
    "notes": lambda: Plan({"add": 2.0}, impact={"add": RUN_BOUNDARY}, notes=("\udcff",)),
    "no plan": lambda: "x",
    "no digest": lambda: InputSet(digest=cast("str", 5)),  # what no checker has seen
    "no inputs": lambda: {"digest": "x"},
    "a list": lambda: [1],
    "a text": lambda: "\udcff",
    "nothing": lambda: None,
}


class Saying:
    """In the method `where` it says what `SAYS` has under `what`."""

    def __init__(self, where: str, what: str) -> None:
        self.where, self.what = where, what

    def load(self, ctx: Context) -> Any:
        return self._said("load", None)

    def build(self, ctx: Context) -> None: ...

    def step(self, ctx: Context, n: int) -> Any:
        return self._said("step", {"n": n})

    def close(self, ctx: Context) -> None: ...

    def config_fields(self) -> tuple[ConfigField, ...]:
        return (ConfigField("add", 1.0, impact=RUN_BOUNDARY),)

    def plan_config(self, ctx: Context, changes: Mapping[str, Any]) -> Any:
        return self._said("plan_config", Plan(dict(changes), impact={"add": RUN_BOUNDARY}))

    def apply_config(self, ctx: Context, plan: Plan) -> None: ...

    def prepare_inputs(self, ctx: Context, reference: Mapping[str, Any]) -> Any:
        return self._said("prepare_inputs", InputSet("d"))

    def install_inputs(self, ctx: Context, prepared: InputSet) -> None: ...

    def publish_inputs(self, ctx: Context, prepared: InputSet) -> None: ...

    def _said(self, where: str, otherwise: Any) -> Any:
        return SAYS[self.what]() if where == self.where else otherwise


def _played(directory: Path, where: str, what: str) -> Played:
    return Played(directory, f"{__name__}:Saying", arguments={"where": where, "what": what})


@pytest.mark.parametrize("what", ["wordless", "half a surrogate pair", "exit", "interrupt", "notes", "no plan"])
def test_se7_a_plan_that_says_anything_is_a_refusal_and_the_next_command_works(tmp_path: Path, what: str) -> None:
    played = _played(tmp_path, "plan_config", what)
    played.built()
    refused = played.command(Kind.CONFIGURE, {"values": {"add": 2.0}})[0]
    assert refused.verdict is Verdict.REFUSED
    assert refused.reasons[0].words
    assert played.run(1, at=0).step == 1
    assert played.close() == 0


@pytest.mark.parametrize("what", ["wordless", "half a surrogate pair", "exit", "no digest", "no inputs"])
def test_se9_inputs_that_are_none_are_refused_while_the_rank_answers(tmp_path: Path, what: str) -> None:
    played = _played(tmp_path, "prepare_inputs", what)
    played.built()
    assert played.command(Kind.INPUTS, {"reference": {"a": 1}})[0].verdict is Verdict.REFUSED
    assert played.run(1, at=0).step == 1
    assert played.close() == 0


@pytest.mark.parametrize("what", ["wordless", "half a surrogate pair", "exit"])
def test_se34_a_step_that_leaves_anyhow_is_told_and_the_workload_is_closed(tmp_path: Path, what: str) -> None:
    played = _played(tmp_path, "step", what)
    played.built()
    heard = played.line.num_heard
    played.begin_run(5, at=0)
    ended = played.line.first(Ended, after=heard)
    assert (ended.state, ended.reasons[0].code) == (RankState.ERROR, "step_raised")
    assert played.close() == 0


@pytest.mark.parametrize("what", ["a list", "a text", "nothing"])
def test_se13_a_step_without_metrics_is_a_step(tmp_path: Path, what: str) -> None:
    played = _played(tmp_path, "step", what)
    played.built()
    assert played.run(3, at=0).step == 3
    beat = played.line.first(Beat, lambda beat: beat.metrics_step == 2)
    assert beat.metrics == (
        {} if what == "nothing" else {"metrics": f"not told: of type {type(SAYS[what]()).__name__}"}
    )
    assert played.close() == 0


@pytest.mark.parametrize("what", ["no digest", "exit"])
def test_se7_what_a_load_says_of_its_inputs_is_a_failed_start_where_it_cannot_be_told(
    tmp_path: Path, what: str
) -> None:
    played = _played(tmp_path, "load", what)
    ended = played.built()
    assert (ended.state, ended.reasons[0].code) == (RankState.ERROR, "start_failed")
    assert played.close() == 0


def test_se13_a_rank_whose_control_thread_fails_leaves_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    played = _played(tmp_path, "", "nothing")
    played.built()
    stopping: list[float] = []

    def timer(seconds: float, *_: object) -> _Never:
        return _Never(stopping, seconds)

    monkeypatch.setattr("paritrace.session.rank.serving.threading.Timer", timer)
    monkeypatch.setattr("paritrace.session.rank_machine.step", _raises(RuntimeError("a fault of ours")))
    played.line.say(Halt(1, "whatever"))
    assert played.joined() == ENDED_OTHERWISE
    assert "its control thread failed" in capfd.readouterr().err
    assert stopping  # work that is stuck would not keep it


class _Never:
    """Stands for the timer of the last resort, which would end the process of the tests."""

    def __init__(self, started: list[float], seconds: float) -> None:
        self.daemon, self._started, self._seconds = False, started, seconds

    def start(self) -> None:
        self._started.append(self._seconds)

    def cancel(self) -> None: ...


class _Raising(Mapping[str, float]):
    def __getitem__(self, name: str) -> float:
        raise RuntimeError(name)

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("no names")

    def __len__(self) -> int:
        return 1


def test_se14_metrics_are_numbers_and_texts_of_a_bounded_size() -> None:
    told = plain_metrics(
        {
            "loss": 0.5,
            "nan": float("nan"),
            "huge": 10**400,
            "least": -(2**63),
            "yes": True,
            "text": "\udcff" + "x" * 1000,
            7: object(),
        }
    )
    assert {name: told[name] for name in ("loss", "nan", "least", "yes", "7")} == {
        "loss": 0.5,
        "nan": "nan",
        "least": "an integer of 64 bits",
        "yes": True,
        "7": "not told: of type object",
    }
    assert told["huge"] == "an integer of 1329 bits"
    assert len(told["text"]) == MAX_TEXT + 2
    assert json.dumps(told, ensure_ascii=False).encode()
    many = plain_metrics({str(i): i for i in range(MAX_METRICS + 5)})
    assert (len(many), many["…"]) == (MAX_METRICS + 1, "5 more")
    assert plain_metrics(_Raising()) == {"metrics": "not told: reading them raised RuntimeError"}


def test_se7_words_of_anything_are_utf_8() -> None:
    assert plain_text(Wordless()) == "Wordless, which has no words that could be shown"
    assert plain_text("a\udcffb") == "a\\udcffb"
    assert plain_text(sys.maxsize) == str(sys.maxsize)
