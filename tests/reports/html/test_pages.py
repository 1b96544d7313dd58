"""Pages say what the terminal says, in well-formed HTML in which no recorded name is markup (SU-7, SU-12, CP-29)."""

from typing import get_args

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from paritrace.compare.checks_result import Checked, Outcome
from paritrace.compare.result import Comparison, LadderRow, Ledger, LedgerEntry
from paritrace.evidence.gaps import Gap
from paritrace.reports import headline
from paritrace.reports.html.check_page import check_page
from paritrace.reports.html.comparison_page import Known, comparison_page
from paritrace.reports.html.links import fragment
from paritrace.reports.html.places import excerpt
from tests.reports.comparisons import agreeing, outside_parameter, parted
from tests.reports.html.pages import assert_whole, rendered
from tests.reports.test_check_screen import checked, invariant

ANY = settings(
    max_examples=6,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],  # records of this size shrink for minutes
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
st.register_type_strategy(  # a generic record: hypothesis does not know what its one parameter is for
    Gap, lambda gap: st.builds(Gap, st.sampled_from(list(get_args(gap)[0])), st.none() | st.text())
)
HOSTILE = "</script><img src=x onerror=alert(1)>\x1b[31m\u202e\x00\"'&{{7*7}}"


@pytest.mark.parametrize("make", [agreeing, parted, outside_parameter])
def test_su7_the_page_leads_with_the_words_of_the_first_screen(make: object) -> None:
    comparison = make()  # type: ignore[operator]  # one of the three above
    found = assert_whole(rendered("comparison.html", comparison_page(comparison)))
    _, sentence, strength = headline.statement(comparison)
    assert sentence in found.text
    assert strength in found.text


def test_cp29_the_page_of_parted_runs_has_every_part() -> None:
    page = comparison_page(parted(), Known("out", found_without_name=True, judge_seconds=2))
    text = assert_whole(rendered("comparison.html", page)).text
    assert [one.command for one in page.commands][:2] == ["paritrace explain F1", "paritrace judge F1"]
    for said in (
        "weights = scores.softmax(dim=-1)",
        "every candidate value fits bfloat16",
        "1,011 later calls differ as consequences",
        "interrupted; cause unknown",
        "the calls between two sure pairs are not the same on both sides",
        "aten._to_copy.default",
        "3f2a91c0",
    ):
        assert said in text


def test_cp29_a_command_names_the_result_where_it_is_not_found_without() -> None:
    page = comparison_page(parted(), Known("a folder/out"))
    assert page.commands[0].command == "paritrace explain 'a folder/out' F1"
    assert not [one for one in comparison_page(parted()).commands if "explain" in one.command]


def test_cp29_both_sources_stand_side_by_side_with_the_lines_around() -> None:
    source = "\n".join(f"line {number}" for number in range(1, 101))
    texts = {("baseline", "model/attention.py"): source}
    place = comparison_page(parted(), Known(texts=texts)).leading
    assert place is not None
    baseline, candidate = place.sources
    assert [line.number for line in baseline.lines] == list(range(37, 46))
    assert [line.number for line in baseline.lines if line.marked] == [41]
    assert [line.text for line in candidate.lines] == [parted().findings[0].place.candidate_source]


def test_an_excerpt_ends_with_its_text_and_is_bounded() -> None:
    assert excerpt("one\ntwo", 2, 9)[-1].text == "two"
    assert excerpt("", 3, 3) == ()
    assert len(excerpt("\n" * 10_000, 1, 9_000)) <= 70


@pytest.mark.slow
@ANY
@given(st.builds(Comparison, schemes=st.dictionaries(st.text(), st.text())))
def test_su12_any_comparison_makes_a_well_formed_page(comparison: Comparison) -> None:
    assert_whole(rendered("comparison.html", comparison_page(comparison)))


@pytest.mark.slow
@ANY
@given(st.from_type(Checked))
def test_su12_any_check_makes_a_well_formed_page(found: Checked) -> None:
    assert_whole(rendered("check.html", check_page(found)))


def test_su12_names_are_text_whatever_they_hold() -> None:
    place = replace(parted().findings[0].place, module=HOSTILE, candidate_source=HOSTILE, slot=HOSTILE, cause=HOSTILE)
    finding = replace(parted().findings[0], sentence=HOSTILE * 2_000, place=place)
    hostile = replace(parted(), findings=(finding,), first_difference=place)
    markup = rendered("comparison.html", comparison_page(hostile))
    found = assert_whole(markup)
    assert "img" not in {tag for tag, _ in found.elements}
    assert not {"\x1b", "\u202e", "\x00"} & set(markup)
    assert len(markup) < 60_000 + 4 * 2_000 * 12  # an endless sentence is cut everywhere it stands


def test_a_page_is_the_same_text_each_time() -> None:
    assert rendered("comparison.html", comparison_page(parted())) == rendered(
        "comparison.html", comparison_page(parted())
    )


def test_cp25_a_check_tells_failures_first_with_their_words() -> None:
    found = checked(invariant("values.finite", Outcome.PASS), invariant("loss.finite", Outcome.FAIL))
    page = check_page(found)
    assert [group.anchor for group in page.groups] == ["fails", "holds"]
    assert "the loss is not finite" in assert_whole(rendered("check.html", page)).text


@given(st.text(max_size=20), st.text(max_size=20))
def test_fragments_of_unlike_anchors_are_unlike_where_they_need_escapes(first: str, second: str) -> None:
    assert fragment(first).isascii()
    assert " " not in fragment(first)


def entry(error: float | None, *, beyond: bool | None, figure: str = "error") -> LedgerEntry:
    return LedgerEntry(0, 0, "forward", "m", "F", 1, 2, error, 1e-6, 1e-4, beyond=beyond, figure=figure)


def test_cp16_the_chart_draws_what_was_measured_and_its_table_has_all_of_it() -> None:
    entries = (
        entry(1e-7, beyond=False),
        entry(1e-2, beyond=True),
        entry(0.0, beyond=False),
        entry(None, beyond=True),
        entry(0.0, beyond=True, figure="norm"),
    )
    page = comparison_page(replace(parted(), ledger=Ledger(entries, total=9)))
    assert page.chart is not None
    assert [dot.name for dot in page.chart.dots] == ["inside", "beyond", "beyond", "beyond"]
    inside, out, infinite, by_norm = (dot.y for dot in page.chart.dots)
    assert infinite < out < page.chart.band[0].top < page.chart.band[0].middle < inside <= by_norm
    assert [row.status for row in page.chart.rows] == [
        "inside",
        "beyond",
        "samples agree",
        "beyond",
        "beyond by norm",
    ]
    assert page.chart.rows[3].error == "not finite"
    text = assert_whole(rendered("comparison.html", page)).text
    assert "showing 5 of 9 outputs" in text
    assert comparison_page(replace(parted(), ledger=None)).chart is None


def test_su10_the_ladder_stands_by_rank_with_its_coordinate_and_by_step() -> None:
    rows = (LadderRow(0, "X=~?.=XXXXXX", 0, "dp 0, tp 1"), LadderRow(0, "============", 7, "dp 3, tp 1"))
    steps = tuple(LadderRow(step, "============") for step in (0, 1))
    page = comparison_page(replace(parted(), ladder_by_rank=rows, ladder_by_step=steps, steps_compared=tuple(range(9))))
    by_rank, by_step = page.ladder.strips
    assert [row.label for row in by_rank.rows] == ["0 (dp 0, tp 1)", "7 (dp 3, tp 1)"]
    assert [mark.name for mark in by_rank.rows[0].marks[:5]] == [
        "beyond",
        "agrees",
        "inside",
        "undetermined",
        "not-reached",
    ]
    assert [row.current for row in by_step.rows] == [True, False]
    assert by_step.left_out == "showing 2 of 9 steps"
    assert "By rank and mesh coordinate" in assert_whole(rendered("comparison.html", page)).text
