"""A comparison as Markdown for a pull request: the first screen in statements, bounded, the rest counted (SU-7)."""

from collections.abc import Iterator, Sequence

from paritrace.compare.result import LADDER, Comparison, Finding, Mark
from paritrace.evidence.spans import ranges
from paritrace.reports import headline, next_commands, screen_coverage, screen_place, screen_policy
from paritrace.reports.formats import OfComparison, Sink
from paritrace.reports.markdown.spelling import code, fenced, plain, table
from paritrace.reports.screen_place import MEANINGS
from paritrace.reports.wording import REASONS, source_place

MOST = 20  # rows of a table; the rest is counted
MARKS = {
    Mark.AGREES: "`=`",
    Mark.INSIDE: "`~`",
    Mark.BEYOND: "**`X`**",
    Mark.UNDETERMINED: "`?`",
    Mark.NOT_REACHED: "`.`",
}


def write(given: OfComparison, sink: Sink, /) -> None:
    """Writes the whole of it; the same result is always the same bytes."""
    sink.write(markdown(given).encode())


def markdown(given: OfComparison, /) -> str:
    """Returns the text: sentence, strength, ladder, where, what changed, what was not seen, what to do next."""
    return "\n\n".join(part for part in _parts(given) if part) + "\n"


def _parts(given: OfComparison) -> Iterator[str]:
    comparison = given.comparison
    anchor, sentence, strength = headline.statement(comparison)
    runs = f"{code(comparison.baseline.run_id)} → {code(comparison.candidate.run_id)}"
    yield f"### paritrace compare {runs}"
    yield f"**{plain(anchor)}** · {plain(sentence, longest=2000)}"
    yield f"*Strength:* {plain(strength, longest=1000)}"
    yield _ladder(comparison)
    yield _where(comparison)
    yield _block("Around it", screen_place.settled(comparison).lines)
    yield _findings(comparison.findings[1:])
    yield _changed(comparison)
    yield _block("Compared", screen_coverage.compared(comparison).lines)
    yield _block("Not seen", screen_coverage.not_seen(comparison).lines)
    yield _undetermined(comparison)
    yield _block("Policy", screen_policy.section(comparison).lines)
    yield _next(given)


def _ladder(comparison: Comparison) -> str:
    marks = [comparison.ladder.get(rung, Mark.UNDETERMINED) for rung in LADDER]
    meanings = MEANINGS if comparison.envelope is None else MEANINGS | {Mark.BEYOND: "beyond it, or differs"}
    used = [mark for mark in Mark if mark in marks]
    legend = ", ".join(f"{MARKS[mark]} {meanings[mark]}" for mark in used)
    return f"{table(LADDER, [[MARKS[mark] for mark in marks]])}\n\nStep {comparison.ladder_step}: {legend}"


def _where(comparison: Comparison) -> str:
    place = comparison.findings[0].place if comparison.findings else comparison.first_difference
    if place is None or not (place.baseline_site or place.candidate_site):
        return ""
    sides = (
        ("baseline", place.baseline_site, place.baseline_source),
        ("candidate", place.candidate_site, place.candidate_source),
    )
    parts = [
        f"**Where** · step {place.step}, {plain(place.phase)}, rank {place.rank}, {code(place.module or '(root)')}"
    ]
    for side, site, source in sides:
        parts.append(f"{side} {code(site) if site else 'has no such call'}")
        if source.strip():
            parts.append(fenced([source.strip()], language="python"))
    return "\n\n".join(parts)


def _findings(findings: Sequence[Finding]) -> str:
    if not findings:
        return ""
    rows = [
        (
            plain(finding.id),
            plain(finding.sentence),
            plain(finding.strength),
            f"{ranges(finding.ranks or (finding.place.rank,))}",
            code(source_place(finding.place)),
        )
        for finding in findings[:MOST]
    ]
    head = ("", "further findings", "strength", "rank", "where")
    return f"{table(head, rows)}{_left_out(len(findings), 'findings')}"


def _changed(comparison: Comparison) -> str:
    changes = comparison.changed
    if not changes:
        return "**Changed** · nothing recorded around the runs differs"
    rows = [
        (plain(one.kind), code(one.name), code(one.baseline or "(none)"), code(one.candidate or "(none)"))
        for one in changes[:MOST]
    ]
    return f"{table(('changed', 'name', 'baseline', 'candidate'), rows)}{_left_out(len(changes), 'changes')}"


def _undetermined(comparison: Comparison) -> str:
    words = {reason.value: text for reason, text in REASONS.items()}
    rows = [
        (side, code(reason), plain(words.get(reason, "")), f"{number:,}")
        for side, found in sorted(comparison.undetermined_by_reason.items())
        for reason, number in sorted(found.items(), key=lambda item: (-item[1], item[0]))
        if number
    ]
    return table(("undetermined", "reason", "", "calls"), rows) if rows else ""


def _block(title: str, lines: Sequence[str]) -> str:
    return f"**{title}**\n\n{fenced(lines)}" if lines else ""


def _next(given: OfComparison) -> str:
    kept = given.kept
    section = next_commands.section(
        given.comparison,
        kept=kept is not None and kept.found_without_name,
        judge_seconds=None if kept is None else kept.judge_seconds,
        narrow_seconds=None if kept is None else kept.narrow_seconds,
    )
    return _block("Next", section.lines)


def _left_out(total: int, what: str) -> str:
    return f"\n\n{total - MOST:,} more {what}: `paritrace compare … --json` lists all {total:,}" if total > MOST else ""
