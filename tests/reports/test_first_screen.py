"""The first screen (CP-29, CP-30): golden files, what it must and must not say, and its bounds for any record."""

import re
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.cells import cell_len

from paritrace.compare.result import (
    LADDER,
    Change,
    Comparison,
    Counts,
    DifferenceClass,
    EnvelopeUsed,
    Finding,
    Group,
    Mark,
    Unpaired,
)
from paritrace.reports.first_screen import Kept, first_screen
from paritrace.reports.wording import CLASSES, GROUPS, REASONS
from tests.reports import comparisons

KEPT = Kept(directory="B/comparisons/run-a/0123456789ab")
SCREENS = {
    "agreeing": comparisons.agreeing,
    "parted": comparisons.parted,
    "outside_parameter": comparisons.outside_parameter,
    "unnamed": comparisons.unnamed,
}
HOSTILE = "\x1b[31m[F9]\n\u202eevil\x07[bold]" + "x" * 500


@pytest.mark.parametrize("name", SCREENS)
def test_cp29_screen_is_as_kept(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"first_screen/{name}.txt", first_screen(SCREENS[name](), kept=KEPT))


def test_cp29_finding_then_strength_then_ladder() -> None:
    lines = first_screen(comparisons.parted()).splitlines()
    assert lines[0] == "[F1]        The runs part at step 0, forward, in encoder.layers.2.self_attn (rank 0)."
    assert lines[1].strip().startswith("bits only: no perturbed baseline was recorded")
    assert next(line for line in lines[2:] if line).startswith("[ladder]")


@pytest.mark.parametrize(
    ("reached", "kind", "how"),
    [
        (7.0, "perturbed baselines", "inside round-off"),
        (2.0, "perturbed baselines", "beyond round-off"),
        (2.0, "repeats", "beyond noise"),
        (None, "repeats", "values differ"),
    ],
)
def test_n12_a_further_finding_says_how_it_was_judged(reached: float | None, kind: str, how: str) -> None:
    """A difference of 1e-2 that an envelope explains must not read like one that nothing does."""
    made = comparisons.parted()
    first, second = made.findings
    place = replace(second.place, difference_class=DifferenceClass.VALUES)
    second = replace(second, place=place, ratio=None if reached is None else 5.0, reached=reached)
    used = EnvelopeUsed(kind=kind, num_draws=8)
    screen = first_screen(replace(made, findings=(first, second), envelope=used))
    line = next(line for line in screen.splitlines() if line.startswith("[F2]"))
    assert how in line


def test_two_long_sides_are_shown_from_where_they_part() -> None:
    """Cut alike, buckets of 27 and of 26 parameters would read the same."""
    made = comparisons.parted()
    of = "all_reduce sum #3 of embedding.weight, blocks.0.attention_norm.weight, blocks.0.attention_norm.bias"
    sides = [f"{of} and {more} more over ranks 0,1" for more in (24, 23)]
    slot = replace(
        made.findings[0].place.slots[0],
        slot="gradient of head.bias",
        difference_class=DifferenceClass.SCALARS,
        baseline=sides[0],
        candidate=sides[1],
    )
    place = replace(made.findings[0].place, slots=(slot,))
    found = replace(made, findings=(replace(made.findings[0], place=place),), first_difference=place)
    screen = first_screen(found)
    assert "24 more over ranks 0,1" in screen
    assert "-> …" in screen
    assert "23 more over ranks 0,1" in screen


def test_cp29_ladder_has_one_mark_per_rung_in_order() -> None:
    lines = first_screen(comparisons.parted()).splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("[ladder]"))
    text = "\n".join(lines[start : start + 2])
    marks = re.findall(r"(" + "|".join(map(re.escape, sorted(LADDER, key=len, reverse=True))) + r") ([=~X?.])", text)
    assert tuple(rung for rung, _ in marks) == LADDER
    assert dict(marks)["code"] == "X"
    assert dict(marks)["reduced grads"] == "?"
    assert dict(marks)["data"] == "="


def test_cp29_a_rung_without_a_mark_is_undetermined() -> None:
    assert "grad norm ?" in first_screen(replace(comparisons.parted(), ladder={}))


def test_su6_first_difference_names_file_line_step_rank_and_module() -> None:
    (line,) = [line for line in first_screen(comparisons.parted()).splitlines() if "first difference:" in line]
    assert line.endswith("first difference: model/attention.py:41, step 0, rank 0, encoder.layers.2.self_attn")


def test_cp29_both_sources_are_shown() -> None:
    text = first_screen(comparisons.parted())
    assert "baseline   model/attention.py:41  weights = scores.softmax(dim=-1)" in text
    assert "candidate  model/attention.py:41  weights = scores.to(torch.bfloat16)" in text


def test_ca28_size_is_an_estimate_or_said_to_be_unknown() -> None:
    assert "about 2.1e-03 relative" in first_screen(comparisons.parted())
    assert "size not recorded" in first_screen(comparisons.outside_parameter())


def test_cp30_unnamed_names_both_ends_and_what_would_settle_it() -> None:
    text = first_screen(comparisons.unnamed())
    assert "last known equal       model/attention.py:30" in text
    assert "first known different  model/attention.py:41" in text
    assert "80 calls of the baseline, 85 of the candidate" in text
    assert "no_anchor 120 of 165" in text
    assert "would settle it        capture both at level op for step 0" in text


@pytest.mark.parametrize("name", SCREENS)
def test_p2_never_says_that_runs_are_the_same(name: str) -> None:
    text = first_screen(SCREENS[name]()).lower()
    assert not re.search(r"identical|equal runs|runs are equal|equivalent|no bug|pass\b", text)


def test_cp7_agreement_is_said_with_its_scheme() -> None:
    assert "bits agree (xxh3-64) in all 6,120 paired calls" in first_screen(comparisons.agreeing())
    without = first_screen(replace(comparisons.agreeing(), schemes={}))
    assert "bits agree (scheme not recorded)" in without


def test_cp7_calls_that_could_not_be_compared_are_not_counted_as_agreeing() -> None:
    some = replace(comparisons.agreeing(), counts=Counts(10, 10, 10, 7, 0, 3, 0, 0, 0))
    assert "in 7 of 10 paired calls" in first_screen(some)


def test_nothing_paired_is_no_agreement() -> None:
    none = replace(comparisons.agreeing(), counts=Counts(10, 12, 0, 0, 0, 0, 10, 12, 0))
    text = first_screen(none)
    assert text.startswith("[result]    No call could be compared: of 10 baseline calls and 12 of the candidate")
    assert "bits agree (" not in text


@pytest.mark.parametrize(
    ("ranks", "chosen", "told"),
    [
        ((0,), {"steps": "all"}, "No calls were recorded; what was recorded agrees: code"),
        ((0,), {"steps": "7:9"}, "No calls of steps 7:9 were recorded; what was recorded agrees: code"),
        ((), {"ranks": "all"}, "Nothing was compared: the runs share no rank."),
        ((), {"ranks": "9"}, "Nothing was compared: the runs share no rank of ranks 9."),
    ],
)
def test_p1_what_was_not_looked_at_is_not_said_to_be_unrecorded(
    ranks: tuple[int, ...], chosen: dict[str, str], told: str
) -> None:
    empty = replace(comparisons.agreeing(), counts=Counts(0, 0, 0, 0, 0, 0, 0, 0, 0), ranks_compared=ranks)
    assert told in first_screen(replace(empty, settings=chosen)).replace("\n            ", " ")


def test_nothing_paired_and_no_figure_is_nothing_compared() -> None:
    unseen = dict.fromkeys(comparisons.ladder(), Mark.UNDETERMINED)
    none = replace(comparisons.agreeing(), counts=Counts(10, 12, 0, 0, 0, 0, 10, 12, 0), ladder=unseen)
    assert first_screen(none).startswith("[result]    Nothing could be compared: of 10 baseline calls and 12 of the")


def test_only_a_rung_differs_and_no_call() -> None:
    ladder = comparisons.ladder(loss=Mark.BEYOND)
    text = first_screen(replace(comparisons.agreeing(), ladder=ladder))
    assert text.startswith(
        "[result]    The runs differ in loss, and no paired call does: bits agree (xxh3-64) in all 6,120"
    )


def test_p1_what_was_not_recorded_around_the_runs_is_not_called_equal() -> None:
    unknown = first_screen(replace(comparisons.agreeing(), ladder=comparisons.ladder(code=Mark.UNDETERMINED)))
    assert "code: undetermined, not recorded on both sides" in unknown
    assert "nothing recorded around the runs differs" not in unknown


def test_changed_code_with_equal_results_is_measured_by_what_was_recorded() -> None:
    text = first_screen(replace(comparisons.agreeing(), ladder=comparisons.ladder(code=Mark.BEYOND)))
    assert text.startswith(
        "[result]    The runs differ in code, and no paired call does: bits agree (xxh3-64) in all 6,120"
    )
    assert "of recorded fields only" in text.splitlines()[2]


def test_next_commands_that_need_a_kept_result_are_left_out_without_one() -> None:
    assert "paritrace explain F1" in first_screen(comparisons.parted(), kept=KEPT)
    assert "paritrace explain F1" not in first_screen(comparisons.parted())


def test_at_most_three_next_commands_each_with_a_cost() -> None:
    lines = first_screen(comparisons.parted(), kept=KEPT).splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("[next]"))
    end = next(number for number, line in enumerate(lines) if line.startswith("[kept]"))
    assert 1 <= end - start <= 3
    assert all(re.search(r"\((~\d+ s|two runs)\)$", line) for line in lines[start:end])


def test_every_class_group_and_reason_has_words() -> None:
    assert set(CLASSES) == set(DifferenceClass)
    assert set(GROUPS) == set(Group)
    assert set(REASONS) == set(Unpaired)


def test_su12_hostile_names_are_harmless() -> None:
    place = replace(comparisons.difference(), module=HOSTILE, file=HOSTILE, function=HOSTILE, baseline_source=HOSTILE)
    finding = Finding(id="F1", sentence=HOSTILE, strength=HOSTILE, place=place)
    text = first_screen(replace(comparisons.parted(), findings=(finding, finding), first_difference=place))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\x07" not in text
    assert "\\x1b[31m" in text
    assert_within_bounds(text)


def assert_within_bounds(text: str) -> None:
    lines = text.split("\n")
    assert lines[-1] == ""
    assert len(lines) - 1 <= 34
    for line in lines[:-1]:
        assert len(line) <= 100
        assert cell_len(line) <= 100
        assert line.isprintable()


COMPARISONS = st.builds(Comparison, schemes=st.dictionaries(st.text(), st.text()))
ANY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@settings(ANY, max_examples=8)
@given(COMPARISONS, st.booleans())
def test_cp29_comparisons_of_any_content_stay_within_34_lines_of_100_columns(found: Comparison, kept: bool) -> None:
    assert_within_bounds(first_screen(found, kept=KEPT if kept else None))


@pytest.mark.slow
@settings(ANY, max_examples=150)
@given(COMPARISONS, st.booleans())
def test_cp29_any_comparison_stays_within_34_lines_of_100_columns(comparison: Comparison, kept: bool) -> None:
    assert_within_bounds(first_screen(comparison, kept=KEPT if kept else None))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_cp29_crowded_comparisons_stay_within_bounds_and_keep_the_finding(data: st.DataObject) -> None:
    base = data.draw(st.sampled_from([comparisons.parted(), comparisons.unnamed(), comparisons.outside_parameter()]))
    times = data.draw(st.integers(1, 60))
    text = data.draw(st.text(max_size=200))
    crowded = replace(
        base,
        findings=base.findings * times,
        changed=tuple(replace(change, name=change.name + text) for change in base.changed) * times,
        outside=base.outside * times,
        recorded_on_one_side=base.recorded_on_one_side * times,
        undetermined_by_place=tuple(replace(place, module=text) for place in base.undetermined_by_place) * times,
    )
    screen = first_screen(crowded, kept=KEPT)
    assert_within_bounds(screen)
    assert "[ladder]" in screen
    assert "first difference:" in screen
    assert "[kept]" in screen


def test_ca29_a_figure_of_a_step_is_named_when_no_call_is() -> None:
    loss = replace(
        comparisons.difference(), file="", line=0, function="loss", slot="loss", level="digest", module="", step=6
    )
    loss = replace(loss, group=Group.UNDETERMINED, baseline_site="", candidate_site="", slots=())
    text = first_screen(replace(comparisons.unnamed(), first_difference=loss))
    assert "first difference: loss, step 6, rank 0, forward; no call is named" in text
    assert "nothing recorded tells where it comes from" in text


def test_su7_many_changed_packages_take_one_line() -> None:
    changes = tuple(Change(kind="package", name=f"package{number}", baseline="1", candidate="2") for number in range(9))
    text = first_screen(replace(comparisons.parted(), changed=changes))
    assert "package      9 differ: package0, package1, package2 and 6 more" in text


def test_ca30_a_long_changed_line_is_shown_as_a_diff_shows_it() -> None:
    start = "result = some_function_with_a_long_name(first_argument, second_argument, "
    change = Change(kind="code", name="train.py", baseline=start + "dim=1)", candidate=start + "dim=-1)")
    lines = first_screen(replace(comparisons.agreeing(), changed=(change,))).splitlines()
    before = next(line for line in lines if " - " in line)
    after = lines[lines.index(before) + 1]
    assert before.rstrip().endswith("dim=1)")
    assert after.strip().startswith("+")
    assert after.endswith("dim=-1)")


def test_cp29_steps_that_one_side_alone_went_through_are_named() -> None:
    agreeing = comparisons.agreeing()
    shorter = replace(agreeing.coverage["candidate"], steps_seen=(0, 1), expected_steps=2)
    lines = first_screen(replace(agreeing, coverage={**agreeing.coverage, "candidate": shorter})).splitlines()
    assert sum("step 2: of the baseline alone" in line for line in lines) == 1
    assert not any("alone" in line for line in first_screen(agreeing).splitlines())
