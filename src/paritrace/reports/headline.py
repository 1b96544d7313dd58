"""The first two statements of a comparison: what was found, in a sentence, and how strong that is (CP-29)."""

from paritrace.compare.result import Comparison, Finding, Mark
from paritrace.evidence.spans import ranges
from paritrace.reports import screen_folds, screen_resume, screen_rows
from paritrace.reports.layout import Section, paragraph
from paritrace.reports.leading import is_boundary, is_rows
from paritrace.reports.wording import count, module_or_root

BITS_ONLY = "bits only"
ALL = "all"
AROUND = frozenset({"code", "config"})  # what changed around the runs, not what they computed
RECORDED_ONLY = "of recorded fields only: agreeing fingerprints do not prove that tensors agree"
BY_FOLD = "by fold: sums over elements see no order; activations by moments and samples, no verdict"
BITS_ONLY_EXPLAINED = "bits only: no perturbed baseline was recorded, so round-off is not told from a fault"


def section(comparison: Comparison, /) -> Section:
    """Returns the sentence and its strength."""
    anchor, sentence, strength = statement(comparison)
    lines = (*paragraph(sentence, most=2), *paragraph(strength, most=3))
    return Section(anchor=anchor, lines=lines, keep=len(lines))


def statement(comparison: Comparison, /) -> tuple[str, str, str]:
    """The anchor, the sentence and its strength."""
    if comparison.resume is not None and is_boundary(comparison):
        return "resume", screen_resume.sentence(comparison), screen_resume.strength(comparison.resume)
    if comparison.token_rows is not None and is_rows(comparison):
        return "rows", screen_rows.sentence(comparison.token_rows), screen_rows.strength(comparison.token_rows)
    if comparison.findings:
        finding = comparison.findings[0]
        return finding.id, finding.sentence, _strength(comparison, finding)
    if comparison.folds is not None:
        return "result", screen_folds.sentence(comparison.folds), BY_FOLD
    return "result", *_without_finding(comparison)


def _strength(comparison: Comparison, finding: Finding) -> str:
    used = comparison.envelope
    if finding.strength == BITS_ONLY:
        return BITS_ONLY_EXPLAINED if used is None else f"bits only: {used.why or 'nothing around it could be judged'}"
    if used is not None and used.judged and not used.beyond:
        return f"{finding.strength}; of {used.judged:,} judged outputs none is beyond"
    return finding.strength


def _without_finding(comparison: Comparison, /) -> tuple[str, str]:
    if comparison.settled is not None:
        return _unnamed(comparison), "undetermined: the records do not single out one call; [settled] says what would"
    if comparison.outside:
        return _outside(comparison), BITS_ONLY_EXPLAINED
    if comparison.counts.different:
        return f"{count(comparison.counts.different, 'paired call')} differ; no call is named.", BITS_ONLY_EXPLAINED
    differing = [rung for rung, mark in comparison.ladder.items() if mark is Mark.BEYOND]
    if differing:
        if not set(differing) <= AROUND:
            return _only_rungs(comparison, differing), BITS_ONLY_EXPLAINED
        strength = RECORDED_ONLY if comparison.counts.paired else "undetermined: [not_seen] says why"
        return _only_rungs(comparison, differing), strength
    return _nothing_differs(comparison)


def _unnamed(comparison: Comparison, /) -> str:
    settled = comparison.settled
    if settled is None or settled.first_different is None:
        return "The runs may part, but no differing call can be named."
    place = settled.first_different
    return (
        f"The runs part at step {place.step}, {place.phase}, in or before {module_or_root(place.module)} "
        f"(rank {place.rank}); which call is first cannot be named."
    )


def _outside(comparison: Comparison, /) -> str:
    first = comparison.outside[0]
    more = len(comparison.outside) - 1
    others = f", and {more:,} more states" if more else ""
    return f"{first.group} {first.name} differs at step {first.step} (rank {first.rank}){others}; no paired call does."


def _only_rungs(comparison: Comparison, differing: list[str], /) -> str:
    counts = comparison.counts
    start = f"The runs differ in {', '.join(differing)}"
    if not counts.paired:
        return f"{start}; no call was compared."
    return f"{start}, and no paired call does: bits agree ({_scheme(comparison)}) in {_agreeing(comparison)}."


def _scheme(comparison: Comparison) -> str:
    return comparison.schemes.get("bits", "scheme not recorded")


def _agreeing(comparison: Comparison) -> str:
    counts = comparison.counts
    of_all = "all " if counts.ok == counts.paired else f"{counts.ok:,} of "
    return f"{of_all}{count(counts.paired, 'paired call')}"


def _nothing_differs(comparison: Comparison, /) -> tuple[str, str]:
    counts = comparison.counts
    if counts.paired == 0:
        return _nothing_paired(comparison)
    sentence = (
        f"No difference found on rank {ranges(comparison.ranks_compared)}, step {ranges(comparison.steps_compared)}: "
        f"bits agree ({_scheme(comparison)}) in {_agreeing(comparison)}."
    )
    return sentence, RECORDED_ONLY


def _nothing_paired(comparison: Comparison, /) -> tuple[str, str]:
    counts = comparison.counts
    if counts.calls_baseline == 0 and counts.calls_candidate == 0:
        if not comparison.ranks_compared:
            return f"Nothing was compared: the runs share no rank{_asked(comparison, 'ranks')}.", "no evidence"
        known = [rung for rung, mark in comparison.ladder.items() if mark is Mark.AGREES]
        of_steps = _asked(comparison, "steps")
        if known:
            sentence = f"No calls{of_steps} were recorded; what was recorded agrees: {', '.join(known)}."
            return sentence, "no call was compared"
        return f"Nothing was compared: neither run recorded a call{of_steps}.", "no evidence"
    calls = f"of {count(counts.calls_baseline, 'baseline call')} and {counts.calls_candidate:,} of the candidate"
    known = [rung for rung, mark in comparison.ladder.items() if mark is Mark.AGREES and rung not in AROUND]
    if known:
        sentence = f"No call could be compared: {calls}, no two correspond; figures of steps agree: {', '.join(known)}."
    else:
        sentence = f"Nothing could be compared: {calls}, no two correspond."
    return sentence, "undetermined: [not_seen] says why"


def _asked(comparison: Comparison, of: str) -> str:
    """Of which steps or ranks alone something is said, where these were chosen: what others hold was not looked at."""
    chosen = comparison.settings.get(of, ALL)
    return "" if chosen == ALL else f" of {of} {chosen}"
