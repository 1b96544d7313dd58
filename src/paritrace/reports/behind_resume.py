"""What the statements about the boundary of a resume rest on (P9)."""

from collections.abc import Iterator

from paritrace.compare.result import Comparison
from paritrace.compare.resume_result import ResumePart
from paritrace.evidence.spans import ranges
from paritrace.reports.behind import Behind
from paritrace.reports.screen_resume import WORDS, boundary, strength, told_part

NOTHING = "(none)"


def resume(comparison: Comparison, _part: str) -> Behind:
    """Every part, every value that does not agree, and what was not captured."""
    found = comparison.resume
    if found is None:
        return Behind("The candidate was not compared as a resumed run: --resume STEP does that.")
    facts = [found.assumed, strength(found)]
    facts += [f"{side}: session {', '.join(sessions)}" for side, sessions in found.sessions.items()]
    for part in found.parts:
        facts.append(told_part(part, found.ranks))
        facts += _states(part)
    facts += [f"{side} did not capture {name}" for side, names in found.not_captured.items() for name in names]
    return Behind(boundary(found), facts=tuple(facts))


def _states(part: ResumePart) -> Iterator[str]:
    for state in part.states:
        idle = "; never drawn from" if state.idle else ""
        values = f"{state.baseline or NOTHING} and {state.candidate or NOTHING}"
        yield f"{WORDS.get(part.group, part.group)} {state.name}, rank {ranges(state.ranks)}: {values}{idle}"
