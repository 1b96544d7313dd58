"""Two sessions by segment: stretches cut at both sides' boundaries, conditions that differ, states that part."""

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from paritrace.session.segment_comparison import Agreement, Content, SegmentComparison, Side, compared
from paritrace.session.segments import lineage_of, segments_of
from tests.session.journals import Told

LR = {0: {"lr": 0.1, "batch": 8}, 1: {"lr": 0.2, "batch": 8}}


def side(told: Told, configs: Mapping[int, Mapping[str, Any]] = LR, *, world_size: int = 2) -> Side:
    return Side("s", "m:W", {}, world_size, lineage_of(segments_of(told.lines)), configs)


def stretches(found: SegmentComparison) -> list[tuple[int, int | None, str]]:
    return [(one.first_step, one.end_step, one.agreement) for one in found.stretches]


def whats(found: SegmentComparison) -> list[str]:
    return [one.what for stretch in found.stretches for one in stretch.differences]


def plain(inputs: str = "A") -> Told:
    return Told().started().inputs(inputs)


def test_se15_a_session_is_equal_to_itself() -> None:
    told = plain().ran(0, 10).revised(step=10).ran(10, 20).checkpoint("saved", "end", 20)
    found = compared(side(told), side(told))
    assert stretches(found) == [(0, 10, "equal"), (10, 20, "equal")]
    assert not found.differences
    assert not found.alone
    assert found.first_unlike is None
    assert found.last_equal_state is not None
    assert found.last_equal_state.step == 20


def test_se15_stretches_are_cut_at_the_boundaries_of_both() -> None:
    ours = plain().ran(0, 10).revised(step=10).ran(10, 30)
    theirs = plain().ran(0, 20).revised(step=20).ran(20, 40)
    found = compared(side(ours), side(theirs))
    assert stretches(found) == [(0, 10, "equal"), (10, 20, "different"), (20, 30, "equal")]
    assert [(one.side, one.first_step, one.end_step) for one in found.alone] == [("cand", 30, 40)]
    assert whats(found) == ["config.lr"]
    assert found.first_unlike is not None
    assert found.first_unlike.first_step == 10


def test_se15_revisions_are_compared_by_their_values_not_by_their_numbers() -> None:
    ours = plain().ran(0, 10)
    theirs = plain().revised().revised().ran(0, 10)
    assert stretches(compared(side(ours), side(theirs, {2: LR[0]}))) == [(0, 10, "equal")]
    assert stretches(compared(side(ours), side(theirs, {}))) == [(0, 10, "not_comparable")]


def test_se15_inputs_without_an_identity_are_not_comparable() -> None:
    ours = Told().started().ran(0, 10)
    assert stretches(compared(side(ours), side(plain().ran(0, 10)))) == [(0, 10, "not_comparable")]
    assert whats(compared(side(plain().ran(0, 9)), side(plain("B").ran(0, 9)))) == ["inputs"]


def test_se24_a_schedule_is_part_of_what_is_compared() -> None:
    schedule = {"lr": [[0, 0.5]]}
    ours, theirs = plain().ran(0, 10, schedule=schedule), plain().ran(0, 10)
    assert whats(compared(side(ours), side(theirs))) == ["schedule"]
    assert stretches(compared(side(ours), side(plain().ran(0, 10, schedule=schedule)))) == [(0, 10, "equal")]


def contents(**files: str) -> dict[str, Content]:
    """Of checkpoints by their digests: one file, and the same digest of the state on two ranks."""
    return {digest: Content(file, {"0": file, "1": file}) for digest, file in files.items()}


def test_se15_states_at_the_same_step_are_compared_by_what_their_checkpoints_hold() -> None:
    ours = (
        plain().ran(0, 10).checkpoint("saved", "a", 10, digest="x").ran(10, 20).checkpoint("saved", "b", 20, digest="y")
    )
    theirs = plain().ran(0, 10).checkpoint("saved", "c", 10, digest="x").ran(10, 20)
    theirs.checkpoint("saved", "d", 20, digest="z")
    bare = compared(side(ours), side(theirs))
    assert [(one.step, one.agreement) for one in bare.states] == [(10, "equal"), (20, "not_comparable")]
    base, cand = (replace(side(told), contents=contents(x="1", y="2", z="3")) for told in (ours, theirs))
    found = compared(base, cand)
    assert [(one.step, one.agreement) for one in found.states] == [(10, "equal"), (20, "different")]
    assert found.last_equal_state is not None
    assert found.first_unlike_state is not None
    assert (found.last_equal_state.step, found.first_unlike_state.step) == (10, 20)


@pytest.mark.parametrize(
    ("ours", "theirs", "agreement"),
    [
        (Content("1", {"0": None}), Content("1", {"0": None}), "equal"),
        (Content("1", {"0": "s"}), Content("2", {"0": "s"}), "equal"),
        (Content("1", {"0": "s"}), Content("2", {"0": "t"}), "different"),
        (Content("1", {"0": "s"}), Content("2", {"0": None}), "not_comparable"),
        (Content("1", {}), Content("2", {}), "not_comparable"),
    ],
)
def test_se15_files_that_differ_are_no_other_state_unless_the_workload_says_so(
    ours: Content, theirs: Content, agreement: str
) -> None:
    base = plain().ran(0, 10).checkpoint("saved", "a", 10, digest="m of ours")
    cand = plain().ran(0, 10).checkpoint("saved", "a", 10, digest="m of theirs")
    (pair,) = compared(
        replace(side(base), contents={"m of ours": ours}), replace(side(cand), contents={"m of theirs": theirs})
    ).states
    assert pair.agreement == agreement


def test_se15_what_a_load_went_back_behind_is_not_compared() -> None:
    ours = plain().ran(0, 10).checkpoint("saved", "ten", 10).ran(10, 100)
    ours.checkpoint("loaded", "ten", 10).ran(10, 20)
    found = compared(side(ours), side(plain().ran(0, 20)))
    assert stretches(found) == [(0, 10, "equal"), (10, 20, "equal")]
    assert not found.alone


def test_se15_an_end_that_is_not_known_stays_unknown() -> None:
    ours = plain().run("admitted", 0)
    found = compared(side(ours), side(plain().ran(0, 10)))
    assert stretches(found) == [(0, 10, "equal")]
    assert [(one.side, one.first_step, one.end_step) for one in found.alone] == [("base", 10, None)]
    assert stretches(compared(side(ours), side(ours))) == [(0, None, "equal")]


def test_se15_sessions_of_unlike_ranks_say_so_once() -> None:
    found = compared(side(plain().ran(0, 10)), side(plain().ran(0, 10), world_size=4))
    assert [(one.what, one.base, one.cand) for one in found.differences] == [("world_size", "2", "4")]
    assert found.differences[0].agreement is Agreement.DIFFERENT


def test_se15_captures_of_the_same_steps_stand_side_by_side() -> None:
    ours = plain().add("run", event="admitted", step=0, epoch=1, config_revision=0)
    ours.add("capture", id="k", name="look", steps=2, level="op", step=5, epoch=1, config_revision=0).run("ended", 10)
    (only,) = compared(side(ours), side(plain().ran(0, 10))).stretches
    assert [one.name for one in only.base_captures] == ["look"]
    assert only.cand_captures == ()
