"""Figures that are compared row by row come out as those compared one by one, in their order (CA-29, PF-10)."""

from collections import Counter
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paritrace.compare.digests import compare_digests
from paritrace.compare.figure_rows import Differing, DigestDifference, FigureKeys, FigureRows, Key
from paritrace.compare.load import Recorded
from paritrace.compare.settings import Settings
from paritrace.evidence.calls import LossMark, State, StateNames, StepMark
from paritrace.evidence.gaps import CaptureGap, Gap
from paritrace.runs.views import SessionView

Value = str | Gap[CaptureGap]
Figures = dict[Key, str | None]
GROUPS = ("parameter", "gradient", "batch", "batch_order", "rng", "sampler")
MOMENTS = {"gradient": "grads", "batch": "batch", "batch_order": "batch"}
NAMES = [
    StateNames(number, group, names, (-1,) * len(names))
    for number, (group, names) in enumerate(
        (group, names) for group in GROUPS for names in (("a", "b"), ("b", "c", "a"), ("b", "b"), ())
    )
]
A_SESSION = cast("SessionView", SimpleNamespace(rank=0))
values = st.sampled_from(["", "0" * 16, "1" * 16, Gap(CaptureGap.NO_DATA)])
steps = st.integers(0, 2)


def a_state(step: int, microbatch: int, names: StateNames, found: list[Value]) -> State:
    return State(step, microbatch, MOMENTS.get(names.group, "begin"), names.id, tuple(found))


states = st.builds(a_state, steps, st.integers(0, 1), st.sampled_from(NAMES), st.lists(values, max_size=3))
marks = st.one_of(
    st.builds(LossMark, steps, st.integers(0, 1), values),
    st.builds(StepMark, steps, st.just(0), st.just(0), st.just(0), st.just(1), st.just(1), values),
)


def side(records: list[State | LossMark | StepMark]) -> Recorded:
    found = Recorded(session=A_SESSION, state_names={names.id: names for names in NAMES})
    for place, record in enumerate(records):
        of = (
            found.states if isinstance(record, State) else found.losses if isinstance(record, LossMark) else found.steps
        )
        cast("list[object]", of).append(record)
        found.stood_at[id(record)] = place
    return found


def text(value: Value) -> str | None:
    return None if isinstance(value, Gap) else value


def one_by_one(of: Recorded) -> tuple[Figures, dict[Key, int]]:
    """Every figure by its whole key: the later of two counts, and stands where the first one did."""
    found: Figures = {}
    places: dict[Key, int] = {}
    seen: Counter[tuple[int, int]] = Counter()
    for state in of.states:
        names = of.state_names[state.names]
        for name, value in zip(names.names, state.values, strict=False):
            key = (state.step, state.microbatch, state.moment, names.group, name)
            found[key], places[key] = text(value), of.stood_at[id(state)]
    for loss in of.losses:
        number = seen[loss.step, loss.microbatch]
        seen[loss.step, loss.microbatch] += 1
        key = (loss.step, loss.microbatch, "loss", "loss", f"loss[{number}]" if number else "loss")
        found[key], places[key] = text(loss.value), of.stood_at[id(loss)]
    for step in of.steps:
        key = (step.step, 0, "grad_norm", "grad_norm", "grad_norm")
        found[key], places[key] = text(step.grad_norm), of.stood_at[id(step)]
    return found, places


def gradients(figures: Figures, step: int) -> set[str]:
    return {key[4] for key, value in figures.items() if key[0] == step and key[3] == "gradient" and value is not None}


def taken_back(different: dict[Key, DigestDifference], both: tuple[Figures, Figures]) -> set[Key]:
    """What says nothing: generators that nobody drew from or that were seen at two moments, places in equal data."""
    entered = [{key[0] for key in figures if key[2] != "begin"} for figures in both]
    other_data = {key[0] for key in different if key[3] == "batch"}
    moved: set[str] = set()
    for figures in both:
        seen = {(key[4], value) for key, value in figures.items() if key[3] == "rng" and value is not None}
        moved |= {name for name, number in Counter(name for name, _ in seen).items() if number > 1}
    return {
        key
        for key in different
        if (key[3] == "rng" and (key[4] not in moved or (key[0] in entered[0]) != (key[0] in entered[1])))
        or (key[3] == "sampler" and key[0] not in other_data)
    }


def reference(a: Recorded, b: Recorded) -> tuple[set[Key], list[DigestDifference], set[Key]]:
    """What agrees, what differs in its order, and what is not known, key by key."""
    (ours, ours_at), (theirs, theirs_at) = one_by_one(a), one_by_one(b)
    equal: set[Key] = set()
    different: dict[Key, DigestDifference] = {}
    unknown = theirs.keys() - ours.keys()
    for key, left in ours.items():
        right = theirs.get(key)
        apart = key[3] == "grad_norm" and gradients(ours, key[0]) != gradients(theirs, key[0])
        if left is None or right is None or apart:
            unknown.add(key)
        elif left == right:
            equal.add(key)
        else:
            different[key] = DigestDifference(*key, left, right, ours_at[key], theirs_at[key])
    for key in [key for key in different if key[3] == "batch_order"]:
        order, of_batch = different.pop(key), (*key[:3], "batch", key[4])
        if of_batch in equal:
            equal.remove(of_batch)
            different[of_batch] = order._replace(group="batch")
    for key in taken_back(different, (ours, theirs)):
        del different[key]
        unknown.add(key)
    equal, unknown = ({key for key in keys if key[3] != "batch_order"} for keys in (equal, unknown))
    return equal, list(different.values()), unknown


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=50)  # also on a busy machine
@given(st.lists(st.one_of(states, marks), max_size=14), st.lists(st.one_of(states, marks), max_size=14), st.booleans())
def test_rows_of_figures_are_compared_as_single_ones_are(
    first: list[State | LossMark | StepMark], second: list[State | LossMark | StepMark], alike: bool
) -> None:
    a, b = side(first), side([*first, *second] if alike else second)
    found = compare_digests(a, b, settings=Settings())
    equal, different, unknown = reference(a, b)
    assert set(found.equal) == equal
    assert list(found.different.values()) == different
    assert set(found.unknown) == unknown
    assert [found.different[key] for key in found.different] == different
    assert [key in found.different for key in (*found.different, *equal)] == [True] * len(different) + [False] * len(
        equal
    )
    assert (len(found.equal), len(found.different), len(found.unknown)) == (len(equal), len(different), len(unknown))
    by_step = {step: [figure for figure in different if figure.step == step] for step in range(3)}
    assert {step: found.different.of_step(step) for step in range(3)} == by_step
    for number, of in enumerate((a, b)):
        _, places = one_by_one(of)
        assert {key: found.sides[number].place(key[:4], key[4]) for key in places} == places


def test_the_place_of_a_figure_that_is_not_there_is_none() -> None:
    rows = FigureRows()
    rows.add((0, 0, "begin", "parameter"), {"a": "1"}, at=7)
    assert (rows.place((0, 0, "begin", "parameter"), "b"), rows.place((1, 0, "begin", "parameter"), "a")) == (-1, -1)


def test_keys_that_are_gone_leave_no_row_behind() -> None:
    keys, differing = FigureKeys(), Differing((FigureRows(), FigureRows()))
    keys.add((0, 0, "begin", "rng", "cpu"))
    differing.add(DigestDifference(0, 0, "begin", "rng", "cpu", "1", "2", 3, 4))
    assert (list(keys.heads), list(differing.heads)) == ([(0, 0, "begin", "rng")], [(0, 0, "begin", "rng")])
    keys.remove((0, 0, "begin", "rng", "cpu"))
    differing.remove((0, 0, "begin", "rng", "cpu"))
    assert not keys
    assert not differing
    assert (list(keys.heads), list(differing.heads), list(differing)) == ([], [], [])
    with pytest.raises(KeyError):
        differing[0, 0, "begin", "rng", "cpu"]
