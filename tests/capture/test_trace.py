"""`paritrace.trace` and its companions in one process (CA-1, CA-3)."""

import sys
import traceback
from pathlib import Path

import numpy as np
import pytest
import torch

import paritrace
from paritrace.capture.api import current
from paritrace.errors import EvidenceError, Outcome, RequestError
from paritrace.evidence.calls import (
    Call,
    Context,
    Detail,
    Flag,
    Function,
    Kind,
    LevelMark,
    Name,
    Scalars,
    Site,
    StepMark,
)
from paritrace.evidence.codec import Record
from paritrace.evidence.gaps import CaptureGap, Gap
from paritrace.evidence.journal import Loss
from paritrace.runs.envelope import SessionStatus
from paritrace.runs.reading import open_run


def records(run: Path) -> list[Record]:
    with open_run(run) as opened:
        (session,) = opened.sessions
        assert session.status is SessionStatus.COMPLETED
        found = list(opened.records(session.session_id))
    assert not [item for item in found if isinstance(item, Loss)]
    return [item for item in found if not isinstance(item, Loss)]


def model_and_optimizer() -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = torch.nn.Linear(2, 2)
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


def train(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
    torch.autograd.backward(model(torch.ones(1, 2)).sum())
    optimizer.step()
    optimizer.zero_grad()


def calls_of(found: list[Record]) -> list[tuple[str, Call]]:
    names = {record.id: record.name for record in found if isinstance(record, Function)}
    return [(names[record.function], record) for record in found if isinstance(record, Call)]


def test_two_runs_one_after_the_other_in_one_process_are_the_same(tmp_path: Path) -> None:
    seen = []
    for name in ("a", "b"):
        with paritrace.trace(tmp_path / name, level=("module", "op"), diff=False) as trace:
            assert trace.run == tmp_path / name
            assert current() is not None
            train(*model_and_optimizer())
        assert current() is None
        found = records(tmp_path / name)
        seen.append([(function, [slot.bits for slot in call.outputs]) for function, call in calls_of(found)])
    assert seen[0] == seen[1]
    assert len(seen[0]) > 5


def test_one_capture_at_a_time(tmp_path: Path) -> None:
    with paritrace.trace(tmp_path / "a", diff=False):
        outer = current()
        with pytest.raises(RequestError) as caught, paritrace.trace(tmp_path / "b", diff=False):
            raise AssertionError("never entered")
        assert (caught.value.code, caught.value.outcome) == ("capture_running", Outcome.REFUSED)
        assert current() is outer
        train(*model_and_optimizer())
    assert not (tmp_path / "b").exists()
    assert any(isinstance(record, StepMark) for record in records(tmp_path / "a"))


def test_a_run_directory_that_holds_a_run_is_refused_and_nothing_is_observed(tmp_path: Path) -> None:
    with paritrace.trace(tmp_path / "a", diff=False):
        pass
    before = {path: path.read_bytes() for path in (tmp_path / "a").rglob("*") if path.is_file()}
    hooks = len(torch.nn.modules.module._global_forward_hooks)
    with pytest.raises(EvidenceError, match="a") as caught, paritrace.trace(tmp_path / "a", diff=False):
        raise AssertionError("never entered")
    assert caught.value.outcome is Outcome.REFUSED
    assert len(torch.nn.modules.module._global_forward_hooks) == hooks
    assert current() is None
    assert {path: path.read_bytes() for path in (tmp_path / "a").rglob("*") if path.is_file()} == before


def test_as_a_decorator(tmp_path: Path) -> None:
    @paritrace.trace(tmp_path / "a", level="op", diff=False)
    def work(value: int, *, more: int = 0) -> int:
        train(*model_and_optimizer())
        return value + more

    assert work(2, more=3) == 5
    assert work.__name__ == "work"
    assert calls_of(records(tmp_path / "a"))


def test_an_error_inside_passes_through_without_a_frame_of_ours_and_the_run_is_sealed(tmp_path: Path) -> None:
    model, _ = model_and_optimizer()
    with pytest.raises(RuntimeError) as caught, paritrace.trace(tmp_path / "a", level=("op", "module"), diff=False):
        model(torch.ones(3, 3))
    shown = "".join(traceback.format_exception(caught.value))
    assert "/src/paritrace/" not in shown
    found = records(tmp_path / "a")
    raised = [function for function, call in calls_of(found) if call.flags & Flag.RAISED]
    assert "aten.addmm.default" in raised
    assert "torch.nn.modules.linear.Linear" in raised
    with open_run(tmp_path / "a") as run:
        assert run.sessions[0].row.metadata["exception"] == "RuntimeError"


def test_off_is_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARITRACE_MODE", " OFF ")
    with paritrace.trace(tmp_path / "a", level="op"):
        assert current() is None
        paritrace.step(3)
        paritrace.observe("x", torch.ones(2))
        with paritrace.context(microbatch=1):
            assert list(paritrace.steps([10, 20])) == [10, 20]
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"level": "modul"}, "level_unsupported"),
        ({"level": ("op", "kernel")}, "level_unsupported"),
        ({"steps": "x"}, "bad_steps"),
        ({"steps": (3, 3)}, "bad_steps"),
        ({"max_bytes": "much"}, "bad_size"),
        ({"regions": 0}, "bad_regions"),
    ],
)
def test_wrong_settings_are_refused_before_anything_happens(
    arguments: dict[str, object], code: str, tmp_path: Path
) -> None:
    with pytest.raises(RequestError) as caught:
        paritrace.trace(tmp_path / "a", **arguments)  # type: ignore[arg-type]
    assert (caught.value.code, caught.value.outcome) == (code, Outcome.REFUSED)
    assert not (tmp_path / "a").exists()


def test_steps_that_are_named_and_those_of_a_loader(tmp_path: Path) -> None:
    model, optimizer = model_and_optimizer()
    with paritrace.trace(tmp_path / "a", steps=(0, 100), diff=False):
        paritrace.step(40)
        train(model, optimizer)
        train(model, optimizer)
        items = []
        for item in paritrace.steps("xy", start=50):
            items.append(item)
            train(model, optimizer)
    assert items == ["x", "y"]
    marks = [record for record in records(tmp_path / "a") if isinstance(record, StepMark)]
    assert [(mark.step, mark.optimizer_steps) for mark in marks] == [(40, 2), (50, 1), (51, 1)]


@pytest.mark.parametrize("step", [-1, 1.5, "3", None, 1 << 63, torch.ones(2, dtype=torch.int64)])
def test_a_step_that_is_no_number_from_0_on_is_refused_with_and_without_a_capture(step: object) -> None:
    with pytest.raises(RequestError) as caught:
        paritrace.step(step)  # type: ignore[arg-type]
    assert (caught.value.code, caught.value.outcome) == ("bad_steps", Outcome.REFUSED)


def test_integers_of_numpy_are_numbers(tmp_path: Path) -> None:
    model, optimizer = model_and_optimizer()
    with paritrace.trace(tmp_path / "a", steps=(0, 100), diff=False):
        paritrace.step(np.int64(7))  # type: ignore[arg-type]
        with paritrace.context(microbatch=np.int32(2)):  # type: ignore[arg-type]
            train(model, optimizer)
    found = records(tmp_path / "a")
    assert {(record.step, record.microbatch) for record in found if isinstance(record, Context)} == {(7, 2)}
    assert [record.step for record in found if isinstance(record, StepMark)] == [7]


def test_the_gradient_norm_is_over_all_optimizers_and_counts_one_that_tries_again_once(tmp_path: Path) -> None:
    first, second = torch.nn.Parameter(torch.zeros(1)), torch.nn.Parameter(torch.zeros(1))
    optimizers = [torch.optim.SGD([parameter], lr=0.1) for parameter in (first, second)]

    def fail() -> float:
        raise ArithmeticError

    with paritrace.trace(tmp_path / "a", diff=False):
        torch.autograd.backward(3 * first + 4 * second)
        with pytest.raises(ArithmeticError):
            optimizers[0].step(fail)
        for optimizer in optimizers:
            optimizer.step()
    (mark,) = [record for record in records(tmp_path / "a") if isinstance(record, StepMark)]
    assert (mark.grad_norm, mark.optimizer_steps) == ((5.0).hex(), 2)


def test_levels_follow_the_steps(tmp_path: Path) -> None:
    model, optimizer = model_and_optimizer()
    with paritrace.trace(tmp_path / "a", level="op", steps="1:2", diff=False):
        for _ in range(4):
            train(model, optimizer)
    found = records(tmp_path / "a")
    contexts = {record.id: record.step for record in found if isinstance(record, Context)}
    assert {contexts[call.context] for _, call in calls_of(found)} == {1}
    marks = [(mark.step, set(mark.levels)) for mark in found if isinstance(mark, LevelMark)]
    assert marks == [(0, {"digest"}), (1, {"digest", "op"}), (2, {"digest"})]


def test_labels_and_the_micro_batch(tmp_path: Path) -> None:
    model, _ = model_and_optimizer()
    with paritrace.trace(tmp_path / "a", diff=False):
        model(torch.ones(1, 2))
        with paritrace.context(stage="warmup", microbatch=3):
            model(torch.ones(1, 2))
            with paritrace.context(stage="inner"):
                model(torch.ones(1, 2))
            model(torch.ones(1, 2))
        with pytest.raises(ZeroDivisionError), paritrace.context(microbatch=9):
            raise ZeroDivisionError
        model(torch.ones(1, 2))
    found = records(tmp_path / "a")
    contexts = {record.id: record for record in found if isinstance(record, Context)}
    seen = [(contexts[call.context].microbatch, contexts[call.context].labels) for _, call in calls_of(found)]
    assert seen == [
        (0, {}),
        (3, {"stage": "warmup", "microbatch": 3}),
        (3, {"stage": "inner", "microbatch": 3}),
        (3, {"stage": "warmup", "microbatch": 3}),
        (0, {}),
    ]


@pytest.mark.parametrize("value", [0.5, None, 1 << 63, ["x"], torch.ones(1)])
def test_a_label_of_another_kind_is_refused(value: object, tmp_path: Path) -> None:
    with pytest.raises(RequestError) as caught, paritrace.context(x=value):  # type: ignore[arg-type]
        raise AssertionError("never entered")
    assert (caught.value.code, caught.value.outcome) == ("bad_label", Outcome.REFUSED)


@pytest.mark.parametrize(("level", "number"), [("digest", 0), ("module", 1), ("op", 1)])
def test_a_tensor_that_is_observed_by_name(level: str, number: int, tmp_path: Path) -> None:
    with paritrace.trace(tmp_path / "a", level=level, diff=False):
        here = sys._getframe().f_lineno + 1
        paritrace.observe("hidden", torch.arange(4.0))
    found = records(tmp_path / "a")
    observed = [call for function, call in calls_of(found) if function == "paritrace.observe(hidden)"]
    assert len(observed) == number
    for call in observed:
        (slot,) = call.outputs
        assert isinstance(slot.bits, str)
        details = [record for record in found if isinstance(record, Detail) and record.call == call.id]
        assert {detail.side for detail in details} == {"i", "o"}
        assert [site.line for site in found if isinstance(site, Site) and site.id == call.site] == [here]


def test_observing_what_is_no_tensor_is_a_gap_and_no_error(tmp_path: Path) -> None:
    with paritrace.trace(tmp_path / "a", diff=False) as trace:
        paritrace.observe("loss", 0.5)  # type: ignore[arg-type]
        paritrace.observe("meta", torch.ones(2, device="meta"))
        capture = current()
        assert capture is not None
    assert trace.run == tmp_path / "a"
    assert capture.gaps == {"capture_error": 1}
    found = records(tmp_path / "a")
    (meta,) = [call for function, call in calls_of(found) if function == "paritrace.observe(meta)"]
    bits = meta.outputs[0].bits
    assert isinstance(bits, Gap)
    assert bits.gap is CaptureGap.NO_DATA


def test_without_a_capture_all_of_it_does_nothing() -> None:
    paritrace.step(1)
    paritrace.observe("x", torch.ones(1))
    with paritrace.context(a=1):
        assert list(paritrace.steps(range(2))) == [0, 1]


def test_positive_and_negative_zero_are_other_scalars(tmp_path: Path) -> None:
    with paritrace.trace(tmp_path / "a", level="op", diff=False):
        for value in (0.0, -0.0, 0, False, float("nan"), float("nan")):
            torch.ones(2).mul(value)
    found = records(tmp_path / "a")
    texts = {record.id: record.values for record in found if isinstance(record, Scalars)}
    values = [texts[call.scalars].get("1") for function, call in calls_of(found) if function == "aten.mul.Tensor"]
    known = [value for value in values if value is not None]
    assert known in ([], ["0.0", "-0.0", "0", "False", "nan", "nan"])
    if not known:  # torch makes tensors of the numbers: then their bits tell them apart
        kinds = {record.id: record.dtype for record in found if isinstance(record, Kind)}
        slots = [call.inputs[1] for function, call in calls_of(found) if function == "aten.mul.Tensor"]
        assert len({(slot.bits, kinds[slot.kind]) for slot in slots}) == 5


def test_a_buffer_that_is_written_in_part_is_a_gap(tmp_path: Path) -> None:
    with paritrace.trace(tmp_path / "a", level="op", diff=False):
        cache = torch.empty(8)
        cache.index_put_((torch.tensor([1, 2]),), torch.ones(2))
        cache.neg()
        cache.zero_()
        cache.neg()
    found = records(tmp_path / "a")
    names = {record.id: record.text for record in found if isinstance(record, Name)}
    first, second = (call for function, call in calls_of(found) if function == "aten.neg.default")
    assert names[first.inputs[0].name] == "args[0]"
    assert first.inputs[0].bits == Gap(CaptureGap.UNINITIALISED)
    assert isinstance(second.inputs[0].bits, str)
