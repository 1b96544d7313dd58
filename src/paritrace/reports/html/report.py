"""Writes a comparison or a check as one HTML file that needs nothing beside it (SU-7, SU-12)."""

from typing import NamedTuple

from markupsafe import Markup

from paritrace import __version__
from paritrace.compare.result import Comparison
from paritrace.reports.behind import pair_of
from paritrace.reports.formats import OfCheck, OfComparison, Sink
from paritrace.reports.html.calls_data import as_script, calls_data
from paritrace.reports.html.check_page import check_page
from paritrace.reports.html.comparison_page import Known, comparison_page
from paritrace.reports.html.evidence import evidence
from paritrace.reports.html.links import InFile
from paritrace.reports.html.pages import ComparisonPage
from paritrace.reports.html.policy import policy_of
from paritrace.reports.html.templates import Chrome, NavLink, asset, render
from paritrace.reports.html.texts import texts_of
from paritrace.reports.html.worst_calls import ORDER_IN_WORDS, Choice

MOST_BYTES = 5_000_000
MOST_CALLS = 2_000
MOST_RECORDS = 100


class Bounds(NamedTuple):
    """How much of what has no end is shown."""

    calls: int
    findings: int
    facts: int


# a report of hostile names may be too large with the first: the next is tried, and what is left out is said
STEPS = (Bounds(MOST_CALLS, 100, 40), Bounds(500, 20, 10), Bounds(50, 3, 3))


def comparison(given: OfComparison, sink: Sink, /) -> None:
    """Writes the report of a comparison: the first screen as a page, the calls that say the most, all evidence."""
    choice = Choice(most=MOST_CALLS, named=_named(given.comparison))
    choice.take(given.rows)
    page = comparison_page(given.comparison, _known(given))
    data = b""
    for bounds in STEPS:
        data = _comparison(given.comparison, page, choice, bounds).encode()
        if len(data) <= MOST_BYTES:
            break
    sink.write(data)


def _named(of: Comparison) -> set[tuple[str, int, int]]:
    """The calls of findings and of the first difference."""
    places = [finding.place for finding in of.findings] + ([of.first_difference] if of.first_difference else [])
    return {(side.value, rank, record) for place in places for side, rank, record in pair_of(place)}


def _known(given: OfComparison) -> Known:
    texts = texts_of(given.comparison, given.runs)
    kept = given.kept
    if kept is None:
        return Known(texts=texts)
    return Known(kept.directory, kept.found_without_name, kept.judge_seconds, kept.narrow_seconds, texts)


def _comparison(of: Comparison, page: ComparisonPage, choice: Choice, bounds: Bounds) -> str:
    from msgspec.structs import replace

    left_out = page.findings_left_out + max(0, len(page.findings) - bounds.findings)
    page = replace(page, findings=page.findings[: bounds.findings], findings_left_out=left_out)
    entries = choice.entries[: bounds.calls]
    parts = evidence(of, page, most_facts=bounds.facts)
    calls = {(one.row.side.value, one.row.rank, one.row.record_id) for one in entries}
    calls |= {("candidate", one.row.rank, one.row.partner) for one in entries if one.partner is not None}
    data = calls_data(entries, total=choice.total)
    return render(
        "report.html",
        page=page,
        chrome=_chrome(page.sentence, asset("page.js") + asset("calls.js"), nav=_SECTIONS),
        links=InFile(anchors=[part.anchor for part in parts], calls=calls),
        evidence=parts,
        order=ORDER_IN_WORDS,
        num_entries=len(entries),
        total=choice.total,
        detailed=data["detailed"],
        data=Markup(as_script(data)),  # noqa: S704  JSON in which no character can end the element
    )


_SECTIONS = (
    NavLink("Finding", "#main"),
    NavLink("Ladder", "#ladder"),
    NavLink("Where", "#first"),
    NavLink("Changed", "#changed"),
    NavLink("Not seen", "#not_seen"),
    NavLink("Next", "#next"),
    NavLink("Calls", "#calls"),
    NavLink("Evidence", "#evidence"),
)


def _chrome(title: str, script: str, *, nav: tuple[NavLink, ...] = ()) -> Chrome:
    style = asset("style.css")
    return Chrome(
        title=f"{title} - paritrace",
        style=style,
        script=script,
        policy=policy_of(style=style, script=script),
        nav=nav,
        made_by=f"Made by paritrace {__version__} from recorded evidence. This file asks for nothing.",
    )


def check(given: OfCheck, sink: Sink, /) -> None:
    """Writes the report of a check."""
    page = check_page(given.checked)
    links = InFile(anchors=())
    sink.write(render("check.html", page=page, chrome=_chrome(page.sentence, asset("page.js")), links=links).encode())
