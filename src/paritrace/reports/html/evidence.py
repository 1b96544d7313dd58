"""Lists what the words and numbers of a page rest on, as `paritrace explain` tells it (P9)."""

from collections.abc import Iterator

from msgspec import Struct

from paritrace.compare.result import Comparison
from paritrace.errors import RequestError
from paritrace.reports.explained import behind
from paritrace.reports.html.page import CallRef
from paritrace.reports.html.pages import ComparisonPage

SECTIONS = ("result", "ladder", "first", "changed", "outside", "one_sided", "findings", "counts", "not_seen", "rules")


class EvidencePart(Struct, frozen=True):
    """What one anchor rests on. `counted`: the condition by which all its calls are found in calls.parquet."""

    anchor: str
    statement: str
    facts: tuple[str, ...]
    facts_left_out: int
    calls: tuple[CallRef, ...]
    calls_left_out: int
    counted: str


def evidence(
    comparison: Comparison, page: ComparisonPage, /, *, most_facts: int = 40, most_calls: int = 20
) -> tuple[EvidencePart, ...]:
    """Returns the evidence of every anchor that stands on the page."""
    return tuple(
        part
        for anchor in dict.fromkeys(_anchors(page))
        if (part := _part(comparison, anchor, most_facts=most_facts, most_calls=most_calls)) is not None
    )


def _anchors(page: ComparisonPage) -> Iterator[str]:
    yield page.anchor
    yield from SECTIONS
    yield from (found.anchor for found in page.findings)
    yield from (rung.anchor for rung in (*page.ladder.around, *page.ladder.within))
    yield from (figure.anchor for figure in page.counts)
    yield from (reason.anchor for reason in page.not_seen.reasons)
    yield from (extra.anchor for extra in page.extras)


def _part(comparison: Comparison, anchor: str, *, most_facts: int, most_calls: int) -> EvidencePart | None:
    try:
        found = behind(comparison, anchor)
    except RequestError:  # a section that this comparison does not have
        return None
    calls = tuple(CallRef(side.value, rank, record) for side, rank, record in found.record_ids[:most_calls])
    return EvidencePart(
        anchor=anchor,
        statement=found.statement,
        facts=found.facts[:most_facts],
        facts_left_out=max(0, len(found.facts) - most_facts),
        calls=calls,
        calls_left_out=max(0, len(found.record_ids) - most_calls),
        counted="" if found.rows is None else " and ".join(f"{name} = {value!s}" for name, value in found.rows.items()),
    )
