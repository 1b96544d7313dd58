"""Makes the part of a page that says what a comparison cannot speak of (CP-9, CP-29)."""

from collections.abc import Iterator

from paritrace.compare.result import Comparison, Unpaired
from paritrace.reports import screen_coverage
from paritrace.reports.html.page import Reason, ReasonPlace
from paritrace.reports.html.pages import NotSeen
from paritrace.reports.wording import REASONS, module_or_root

MOST_PLACES = 200
NOTHING = "nothing is known to be missing"


def not_seen(comparison: Comparison, /) -> NotSeen:
    """Returns every statement, undetermined calls by reason and by place, and the comparison's limits."""
    places = sorted(comparison.undetermined_by_place, key=lambda one: (-one.count, one.step, one.module))
    return NotSeen(
        statements=tuple(screen_coverage.statements(comparison)) or (NOTHING,),
        reasons=tuple(_reasons(comparison)),
        places=tuple(
            ReasonPlace(
                one.side, one.step, one.phase, module_or_root(one.module), one.file, one.reason.value, one.count
            )
            for one in places[:MOST_PLACES]
        ),
        places_left_out=max(0, len(places) - MOST_PLACES),
        limits=tuple((limit.code, limit.text) for limit in comparison.limits),
    )


def _reasons(comparison: Comparison) -> Iterator[Reason]:
    totals = {"baseline": comparison.counts.calls_baseline, "candidate": comparison.counts.calls_candidate}
    for side, reasons in comparison.undetermined_by_reason.items():
        for code, calls in sorted(reasons.items(), key=lambda item: (-item[1], item[0])):
            total = totals.get(side, 0)
            share = calls / total if total else 0.0
            yield Reason(f"undetermined.{code}", side, code, _words(code), calls, share)


def _words(code: str) -> str:
    known = {reason.value: words for reason, words in REASONS.items()}
    return known.get(code, code)


def reasons_in_words() -> dict[str, str]:
    """Returns every reason of the vocabulary with its words."""
    return {reason.value: REASONS[reason] for reason in Unpaired}
