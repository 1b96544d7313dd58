"""The black box in one process: nothing is written without a trigger, and with one the last steps are (CA-36)."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import paritrace
from paritrace.capture import blackbox as module
from paritrace.capture.api import current
from paritrace.capture.writer import RESERVE_BYTES
from paritrace.evidence.blackbox import Cause
from paritrace.evidence.calls import Call, Context, Level
from paritrace.evidence.gaps import CountedGap
from paritrace.runs.pack import pack
from paritrace.runs.reading import open_run
from paritrace.runs.removal import remove_run
from paritrace.runs.verify import Finding, verify
from tests.capture.black_boxes import Seen, seen_in, seen_of

WRITTEN = {0, 1, 2, 4, 8, 16, 32}  # windows of level op, with level module
Change = Callable[[int, torch.Tensor], torch.Tensor]


def watch_gradient(tensor: torch.Tensor, hook: Callable[[torch.Tensor], torch.Tensor]) -> None:
    register: Callable[[object], object] = tensor.register_hook
    register(hook)


def unchanged(_: int, tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def train(steps: int, *, batch: Change = unchanged, loss: Change = unchanged) -> list[torch.Tensor]:
    """A training; what it ends with."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(steps):
        value = loss(step, model(batch(step, torch.randn(4, 6))).square().mean())
        torch.autograd.backward(value)
        optimizer.step()
        optimizer.zero_grad()
    return [parameter.detach().clone() for parameter in model.parameters()]


def captured(run: Path, steps: int, *, batch: Change = unchanged, loss: Change = unchanged) -> Seen:
    with paritrace.trace(run, diff=False, black_box=True):
        train(steps, batch=batch, loss=loss)
    return seen_in(run)


def with_nan_at(bad: int) -> Change:
    return lambda step, tensor: tensor * math.nan if step == bad else tensor


def test_nan_at_step_37_writes_the_20_steps_that_end_with_it(tmp_path: Path) -> None:
    seen = captured(tmp_path / "run", 50, batch=with_nan_at(37))
    (trigger,) = seen.triggers
    assert (trigger.cause, trigger.step) == (Cause.NON_FINITE, 37)
    assert set(trigger.steps) == set(range(18, 38)) - WRITTEN
    assert seen.steps[Level.MODULE] == set(range(18, 38)) | WRITTEN
    assert seen.steps[Level.OP] == WRITTEN
    assert (trigger.dropped_steps, trigger.dropped_rows, seen.gaps) == (0, 0, {})
    assert [mark.step for mark in seen.marks] == list(range(50)), "level digest goes on"


def test_the_steps_that_a_trigger_names_are_whole(tmp_path: Path) -> None:
    seen = captured(tmp_path / "run", 50, batch=with_nan_at(37))
    with paritrace.trace(tmp_path / "all", level="module", steps=(0, 50), diff=False):
        train(50, batch=with_nan_at(37))
    of_step = {step: sum(1 for _ in calls) for step, calls in by_step(tmp_path / "all").items()}
    for step, calls in by_step(tmp_path / "run").items():
        if step not in WRITTEN:
            assert len(calls) == of_step[step] > 5, step
    assert len({call.id for call in seen.calls}) == len(seen.calls)


def by_step(run_dir: Path) -> dict[int, list[int]]:
    """The ids of module calls by step."""
    found: dict[int, list[int]] = {}
    contexts: dict[int, int] = {}
    with open_run(run_dir) as run:
        for record in run.records("rank-0"):
            if isinstance(record, Context):
                contexts[record.id] = record.step
            elif isinstance(record, Call):
                found.setdefault(contexts[record.context], []).append(record.id)
    return found


def test_without_a_trigger_nothing_of_the_ring_is_written_and_the_journal_stays_small(tmp_path: Path) -> None:
    kept = captured(tmp_path / "kept", 60)
    assert kept.triggers == []
    assert kept.steps[Level.MODULE] == WRITTEN
    with paritrace.trace(tmp_path / "digest", level="digest", diff=False):
        train(60)
    with paritrace.trace(tmp_path / "module", level="module", steps=(0, 60), diff=False):
        train(60)
    digest, whole = seen_in(tmp_path / "digest").num_bytes, seen_in(tmp_path / "module").num_bytes
    with paritrace.trace(tmp_path / "windows", level=("module", "op"), steps=(0, 1), diff=False):
        train(1)
    window = seen_in(tmp_path / "windows").num_bytes
    assert kept.num_bytes < digest + len(WRITTEN) * window
    assert kept.num_bytes - len(WRITTEN) * window < whole / 2


def contexts_of(run_dir: Path) -> tuple[set[int], set[int]]:
    """Steps of the contexts in a journal, and ids that a call refers to before they are defined."""
    defined: dict[int, int] = {}
    undefined: set[int] = set()
    with open_run(run_dir) as run:
        for record in run.records("rank-0"):
            if isinstance(record, Context):
                assert defined.get(record.id, record.step) == record.step
                defined[record.id] = record.step
            elif isinstance(record, Call) and record.context not in defined:
                undefined.add(record.context)
    return set(defined.values()), undefined


def test_contexts_of_kept_steps_are_written_with_their_rows_only(tmp_path: Path) -> None:
    captured(tmp_path / "kept", 40)
    assert contexts_of(tmp_path / "kept") == (WRITTEN, set())
    captured(tmp_path / "run", 50, batch=with_nan_at(37))
    steps, undefined = contexts_of(tmp_path / "run")
    assert (steps, undefined) == (WRITTEN | set(range(18, 38)), set())


@pytest.mark.parametrize(
    ("change", "cause", "figure"),
    [
        (lambda step, value: value * 1e5 if step == 30 else value, Cause.LOSS_OUTLIER, "loss 0"),
        (lambda step, value: value * math.inf if step == 30 else value, Cause.NON_FINITE, "loss 0"),
    ],
)
def test_a_loss_that_leaps_is_a_trigger_with_its_threshold(
    tmp_path: Path, change: Change, cause: Cause, figure: str
) -> None:
    seen = captured(tmp_path / "run", 31, loss=change)
    trigger = seen.triggers[0]
    assert (trigger.cause, trigger.step, trigger.detail) == (cause, 30, figure)
    assert set(trigger.steps) == set(range(11, 31)) - WRITTEN
    value = float.fromhex(trigger.value)
    assert value > float.fromhex(trigger.threshold) if trigger.threshold else not math.isfinite(value)


def test_a_gradient_norm_that_leaps_is_a_trigger(tmp_path: Path) -> None:
    def kicked(step: int, value: torch.Tensor) -> torch.Tensor:
        watch_gradient(value, lambda gradient: gradient * (1e6 if step == 30 else 1))
        return value

    seen = captured(tmp_path / "run", 31, loss=kicked)
    assert [(one.cause, one.step) for one in seen.triggers] == [(Cause.GRADIENT_NORM_OUTLIER, 30)]
    assert 30 in seen.triggers[0].steps


def test_nothing_fires_before_there_are_figures_to_compare_with(tmp_path: Path) -> None:
    seen = captured(tmp_path / "run", 16, loss=lambda step, value: value + (1e5 if step == 9 else 0))
    assert seen.triggers == []


def test_nan_that_stays_is_written_once(tmp_path: Path) -> None:
    seen = captured(tmp_path / "run", 90, batch=lambda step, tensor: tensor * (math.nan if step > 20 else 1))
    assert [(one.cause, one.step) for one in seen.triggers] == [(Cause.NON_FINITE, 21)]


def test_a_trigger_of_the_user_keeps_the_words_and_opens_a_window(tmp_path: Path) -> None:
    with paritrace.trace(tmp_path / "run", diff=False, black_box=True):
        train(30, batch=_asked)
    seen = seen_in(tmp_path / "run")
    (trigger,) = seen.triggers
    # Step 24 ends when the forward of step 25 begins: so it is the present one, and the window is that of step 25.
    assert (trigger.cause, trigger.detail, trigger.step) == (Cause.USER, "looks odd", 24)
    assert seen.steps[Level.OP] == {step for step in WRITTEN if step < 30} | {25}
    assert trigger.steps[-1] == 24


def _asked(step: int, tensor: torch.Tensor) -> torch.Tensor:
    if step == 25:
        paritrace.trigger("looks odd", window=True)
    return tensor


def test_a_person_triggers_from_outside_by_a_name_in_the_folder(tmp_path: Path) -> None:
    def touched(step: int, tensor: torch.Tensor) -> torch.Tensor:
        if step == 25:
            (tmp_path / "run" / "triggers" / "look").touch()
        return tensor

    seen = captured(tmp_path / "run", 30, batch=touched)
    (trigger,) = seen.triggers
    assert (trigger.cause, trigger.detail, trigger.step) == (Cause.USER, "triggers/look", 24)
    assert trigger.steps[-1] == 24


def test_the_box_is_written_a_limited_number_of_times_and_once_more_at_the_end(tmp_path: Path) -> None:
    asks = module.MAX_WRITES + 3

    def asking(step: int, tensor: torch.Tensor) -> torch.Tensor:
        if step % 3 == 0 and step < 3 * asks:
            paritrace.trigger(f"number {step // 3}")
        if step == 3 * asks + 1:
            raise KeyError("secret")
        return tensor

    with pytest.raises(KeyError):
        captured(tmp_path / "run", 3 * asks + 2, batch=asking)
    seen = seen_in(tmp_path / "run")
    assert len(seen.triggers) == asks + 1
    assert [one.detail for one in seen.triggers[: module.MAX_WRITES]] == [f"number {n}" for n in range(8)]
    assert all(module.NOT_WRITTEN in one.detail and not one.steps for one in seen.triggers[module.MAX_WRITES : -1])
    last = seen.triggers[-1]
    assert (last.cause, last.detail) == (Cause.CRASH, "KeyError"), "the error's words are the workload's (P7)"
    assert last.rows > 0


def test_an_error_in_backward_is_a_crash_and_the_step_is_kept_as_far_as_it_came(tmp_path: Path) -> None:
    def failing(step: int, value: torch.Tensor) -> torch.Tensor:
        def hook(gradient: torch.Tensor) -> torch.Tensor:
            if step == 25:
                raise RuntimeError("in backward")
            return gradient

        watch_gradient(value, hook)
        return value

    with pytest.raises(RuntimeError, match="in backward"):
        captured(tmp_path / "run", 40, loss=failing)
    (trigger,) = seen_in(tmp_path / "run").triggers
    assert (trigger.cause, trigger.detail, trigger.step) == (Cause.CRASH, "RuntimeError", 25)
    assert trigger.steps[-1] == 25


def test_a_ring_over_its_bytes_says_what_it_dropped(tmp_path: Path) -> None:
    with paritrace.trace(tmp_path / "run", diff=False, black_box=True):
        capture = current()
        assert capture is not None
        ring = vars(vars(capture)["_box"])["_ring"]
        vars(ring)["_limit"] = 40_000
        train(40, batch=with_nan_at(37))
    (trigger,) = seen_in(tmp_path / "run").triggers
    assert 0 < len(trigger.steps) < 19
    assert trigger.steps[-1] == 37
    assert trigger.dropped_steps + len(trigger.steps) == 19
    assert trigger.dropped_rows > 0


def test_a_step_that_is_kept_in_part_is_a_counted_gap(tmp_path: Path) -> None:
    with paritrace.trace(tmp_path / "run", diff=False, black_box=True):
        capture = current()
        assert capture is not None
        vars(vars(vars(capture)["_box"])["_ring"])["_limit"] = 100
        train(40, batch=with_nan_at(37))
    seen = seen_in(tmp_path / "run")
    (trigger,) = seen.triggers
    assert (trigger.steps, trigger.rows) == ((37,), 0)
    assert contexts_of(tmp_path / "run")[1] == set(), "the rest of the step is written, and refers to its contexts"
    assert seen.gaps[CountedGap.OVER_BUDGET] > 0


def test_a_journal_that_is_full_has_room_for_the_box(tmp_path: Path) -> None:
    full = RESERVE_BYTES * 3 // 2  # of which a quarter is the box's
    with paritrace.trace(tmp_path / "run", diff=False, level="digest", black_box=True, max_bytes=full):
        train(60, batch=with_nan_at(57))
    seen = seen_in(tmp_path / "run")
    assert seen.gaps[CountedGap.OVER_BUDGET] == 0, "counted by the writer, in the receipt"
    last = seen.triggers[-1]
    assert (last.cause, last.step) == (Cause.NON_FINITE, 57)
    assert set(last.steps) == set(range(38, 58))
    assert seen.steps[Level.MODULE] >= set(last.steps)
    with open_run(tmp_path / "run") as run:
        (session,) = run.sessions
        assert session.receipt is not None
        assert session.receipt.counts.gaps[CountedGap.OVER_BUDGET] > 0


def test_bits_are_the_same_with_and_without(tmp_path: Path) -> None:
    bare = train(45, batch=with_nan_at(44))
    with paritrace.trace(tmp_path / "run", diff=False, black_box=True, budget="1000%"):
        kept = train(45, batch=with_nan_at(44))
    assert all(
        torch.equal(one.view(torch.int32), other.view(torch.int32)) for one, other in zip(bare, kept, strict=True)
    )


def test_a_run_with_a_black_box_verifies_packs_and_names_its_own_folder(tmp_path: Path) -> None:
    captured(tmp_path / "run", 25, batch=with_nan_at(23))
    with open_run(tmp_path / "run") as run:
        assert verify(run).verdict is Finding.INTACT
    pack(tmp_path / "run", tmp_path / "run.tar.zst")
    with open_run(tmp_path / "run.tar.zst") as run:
        assert [trigger.step for trigger in seen_of(run, "rank-0").triggers] == [23]
    remove_run(tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_what_is_given_up_for_the_budget_is_told(tmp_path: Path) -> None:
    with paritrace.trace(tmp_path / "run", diff=False, black_box=True, budget="0.0001%"):
        train(12)
    seen = seen_in(tmp_path / "run")
    reasons = [(mark.step, mark.levels, mark.reason) for mark in seen.levels if mark.reason.startswith("budget")]
    assert reasons[0][:2] == (4, (Level.DIGEST,)), "steps 0 to 2 have windows, which are not judged"
    assert "level module given up, digest goes on" in reasons[0][2]
    assert seen.steps[Level.OP] == {0, 1, 2}, "with the level its windows go"


def test_without_a_black_box_a_trigger_is_nothing(tmp_path: Path) -> None:
    paritrace.trigger("nobody listens")
    with paritrace.trace(tmp_path / "run", diff=False):
        paritrace.trigger("nobody listens")
        train(2)
    assert seen_in(tmp_path / "run").triggers == []
    assert not (tmp_path / "run" / "triggers").exists()
