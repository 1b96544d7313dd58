"""What is said about collectives beside the findings: other orders, and what an incomplete recording leaves open."""

from paritrace.compare.result import CollectiveDifference, Comparison
from paritrace.evidence.spans import ranges
from paritrace.reports.harmless import shorten
from paritrace.reports.layout import CONTENT, Section

MOST = 3
OPEN = "; a recording is incomplete: none is called missing"


def section(comparison: Comparison, /) -> Section:
    """Returns the statements that no finding makes, one line each (CP-21)."""
    found = {finding.place.collective for finding in comparison.findings}
    lines = (statement(told, width=CONTENT) for told in comparison.collectives if told.sentence not in found)
    return Section(anchor="groups", lines=tuple(lines), most=MOST)


def statement(told: CollectiveDifference, *, width: int) -> str:
    """A statement with its ranks; where a recording is incomplete, with what cannot be said."""
    on = f", rank {ranges(told.ranks)}{'' if told.complete else OPEN}"
    return shorten(told.sentence, width=width - len(on)) + on
