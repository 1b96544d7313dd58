"""Generated placements and controls hold what they say: programs, distinct places, answers that follow (CP-18)."""

from pathlib import Path

import pytest

from benchmarks.faults.case import Launch, Variant
from benchmarks.faults.checkouts import PLACED_WORKLOAD, edited, sources_of
from benchmarks.faults.masks import MASKS
from benchmarks.faults.placed_controls import KINDS, drawn_controls, kernel_controls
from benchmarks.faults.placed_suite import MECHANISMS, placed_pairs
from benchmarks.faults.placing import LAYERS, MATRICES, Mode, Passes, Placement, expected, filled, placements
from benchmarks.faults.ranked_faults import RANKED_FAULTS, UP
from benchmarks.faults.ranked_placing import ranked_pairs

PLACES = 25


def sources(variant: Variant) -> dict[str, str]:
    """The checkout of a side, not written."""
    paths = sources_of(variant.launch)
    return {path.name: edited(path.read_text("utf-8"), file=path.name, edits=variant.edits) for path in paths}


def test_there_are_forty_mechanisms_and_a_thousand_controls_and_names_are_unique() -> None:
    assert len(MECHANISMS) + len(RANKED_FAULTS) >= 40
    names = [one.name for one in MECHANISMS]
    assert len(set(names)) == len(names)
    controls = list(drawn_controls(1050, seed=0))
    assert len({one.id for one in controls}) == 1050
    assert {one.kind for one in controls} == {*KINDS, "kernels"}
    pairs = list(placed_pairs(PLACES, seed=0))
    assert len({pair.id for pair in pairs}) == len(pairs) > 2000


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: mechanism.name)
def test_places_are_distinct_and_the_same_for_the_same_seed(mechanism: object) -> None:
    found = next(one for one in MECHANISMS if one is mechanism)
    for mode in Mode:
        drawn = placements(found, PLACES, mode=mode, seed=0)
        assert drawn == placements(found, PLACES, mode=mode, seed=0)
        assert len(set(drawn)) == len(drawn) >= 8
        assert {place.mask for place in drawn} <= ({""} if mode is Mode.PLAIN else set(found.masks))
    other = placements(found, PLACES, mode=Mode.PLAIN, seed=1)
    assert other != placements(found, PLACES, mode=Mode.PLAIN, seed=0)


def test_every_mechanism_is_a_program_with_its_planted_line_plain_and_behind_every_kernel_change() -> None:
    for pair in placed_pairs(2, seed=0):
        baseline, candidate = sources(pair.fault.baseline), sources(pair.fault.candidate)
        for name, text in candidate.items():
            compile(text, name, "exec")
        assert sum(text.count("# PLANT") for text in candidate.values()) == 1
        assert candidate != baseline
        for place in pair.fault.expected:
            assert not place.at or place.at in candidate[place.file] or place.at in baseline[place.file]
    for mask, edits in MASKS.items():
        text = edited((PLACED_WORKLOAD / "model.py").read_text("utf-8"), file="model.py", edits=edits)
        compile(text, mask, "exec")


def test_the_expected_answer_follows_from_the_placement() -> None:
    mechanism = next(one for one in MECHANISMS if one.name == "keys-scaled")
    steps = Placement(layer=3, number=1, dtype="float32", passes=Passes.STEPS, seed=11, parameter="")
    parts = Placement(layer=2, number=1, dtype="bfloat16", passes=Passes.MICRO_BATCHES, seed=11, parameter="")
    first, second = (expected(mechanism.answers[0], place) for place in (steps, parts))
    assert (first.module, first.step, first.microbatch, first.phase) == ("blocks.3.attention", 1, None, "forward")
    assert (second.module, second.step, second.microbatch) == ("blocks.2.attention", 0, 1)
    assert filled(mechanism.edits[0].new, steps).endswith(
        "if self.layer == 3 and Now.number >= 1 else k_BTW  # PLANT\n"
    )


def test_what_is_planted_names_its_parameter_and_the_neighbours() -> None:
    place = Placement(layer=LAYERS - 1, number=0, dtype="float32", passes=Passes.STEPS, seed=11, parameter=MATRICES[0])
    assert filled("{parameter} {other} {owner}", place) == (
        "blocks.3.attention.query.weight blocks.0.attention.query.weight blocks.3.attention.query"
    )


def test_generated_controls_are_programs_and_never_the_same_run_unmeant() -> None:
    for one in list(drawn_controls(64, seed=0)) + list(kernel_controls())[:7]:
        baseline, candidate = sources(one.control.baseline), sources(one.control.candidate)
        for name, text in candidate.items():
            compile(text, name, "exec")
        meant_equal = one.kind in ("identical", "other-checkout")
        assert (candidate == baseline) is meant_equal or one.kind == "uninitialised"
        assert one.control.candidate != one.control.baseline


def test_mistakes_of_two_ranks_move_with_their_parameter() -> None:
    pairs = list(ranked_pairs(3, seed=0))
    assert len(pairs) == 3 * len(RANKED_FAULTS)
    for pair in pairs:
        text = "".join(sources(pair.fault.candidate).values())
        if pair.parameter:
            assert pair.parameter in text
            assert pair.parameter == UP or UP not in text
            named = {name for place in pair.fault.expected for name in place.names}
            assert not named or pair.parameter in named or named & {"batch"}


def test_a_checkout_of_the_placed_workload_is_small_enough_to_read() -> None:
    for path in sources_of(Launch.PLACED):
        assert len(Path(path).read_text("utf-8").splitlines()) < 250
