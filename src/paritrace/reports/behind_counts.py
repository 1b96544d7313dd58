"""What counts and coverage rest on: which rows of calls.parquet a figure counts (P9)."""

from paritrace.compare.result import Comparison
from paritrace.reports.behind import Behind, unknown_id
from paritrace.reports.next_commands import COMPARE_CALLS_PER_SECOND, READING_SECONDS
from paritrace.reports.screen_coverage import not_folded
from paritrace.reports.wording import count, module_or_root

_ROWS_OF: dict[str, dict[str, object]] = {
    "calls_baseline": {"side": "baseline"},
    "calls_candidate": {"side": "candidate"},
    "paired": {"side": "baseline", "correspondence": "paired"},
    "ok": {"side": "baseline", "status": "ok"},
    "different": {"side": "baseline", "status": "different"},
    "incomparable": {"side": "baseline", "status": "incomparable"},
    "undetermined_baseline": {"side": "baseline", "correspondence": "undetermined"},
    "undetermined_candidate": {"side": "candidate", "correspondence": "undetermined"},
    "reordered": {"side": "baseline", "reordered": True},
}


def counts(comparison: Comparison, name: str) -> Behind:
    counts = comparison.counts
    figures = {figure: getattr(counts, figure) for figure in counts.__struct_fields__}
    if not name:
        return Behind("Calls by what became of them.", tuple(f"{key} {value:,}" for key, value in figures.items()))
    if name not in figures:
        raise unknown_id(f"counts.{name}", [f"counts.{figure}" for figure in figures])
    return Behind(f"{name} {figures[name]:,}", rows=_ROWS_OF[name])


def undetermined(comparison: Comparison, reason: str) -> Behind:
    if reason:
        return Behind(f"Calls without a partner because of {reason}.", rows={"reason": reason})
    return Behind("Calls without a partner, by reason and place.", tuple(place_counts(comparison)))


def place_counts(comparison: Comparison) -> list[str]:
    by_reason = [
        f"{side}, {reason}: {number:,}"
        for side, reasons in comparison.undetermined_by_reason.items()
        for reason, number in sorted(reasons.items())
    ]
    return by_reason + [
        f"{place.count:,} {place.side}, step {place.step} {place.phase}, {module_or_root(place.module)}, "
        f"{place.file}: {place.reason.value}"
        for place in comparison.undetermined_by_place
    ]


def not_seen(comparison: Comparison, _part: str) -> Behind:
    facts = [f"rank {rank} is on one side only" for rank in not_folded(comparison)] + place_counts(comparison)
    return Behind("What this comparison cannot speak of.", tuple(facts + coverage_facts(comparison)))


def coverage(comparison: Comparison, _part: str) -> Behind:
    return Behind("What each side recorded.", tuple(coverage_facts(comparison)))


def coverage_facts(comparison: Comparison) -> list[str]:
    facts: list[str] = []
    for side, coverage in comparison.coverage.items():
        expected = "not declared" if coverage.expected_steps is None else f"{coverage.expected_steps:,}"
        facts.append(f"{side}: {coverage.status}; steps seen {len(coverage.steps_seen):,}, expected {expected}")
        facts.append(f"{side}: {count(coverage.bytes_lost, 'byte')} of journals lost")
        facts += [f"{side}: gap {reason} {number:,}" for reason, number in sorted(coverage.gaps.items())]
        facts += [f"{side}: not captured: {name}" for name in coverage.not_captured]
    return facts


def limits(comparison: Comparison, _part: str) -> Behind:
    facts = tuple(f"{limit.code}: {limit.text}" for limit in comparison.limits)
    return Behind("What a comparison of this kind never says.", facts)


def result(comparison: Comparison, _part: str) -> Behind:
    return Behind("The counts behind the first line.", counts(comparison, "").facts + tuple(coverage_facts(comparison)))


def next_commands(comparison: Comparison, _part: str) -> Behind:
    counted = count(comparison.counts.calls_baseline + comparison.counts.calls_candidate, "call")
    fact = f"{counted} of both sides at {COMPARE_CALLS_PER_SECOND:,} calls a second, at least {READING_SECONDS} s"
    return Behind("The times of the next commands are estimates.", (fact,))


def kept(comparison: Comparison, _part: str) -> Behind:
    return Behind("The files of this result.", tuple(f"{name}: {path}" for name, path in comparison.reports.items()))
