"""Whether anything that was computed differs between two runs: the one rule of exit statuses and of narrowing."""

from paritrace.compare.joined_outcomes import resume_apart, rows_apart
from paritrace.compare.result import AROUND_RUNGS, Comparison, Mark


def differs(found: Comparison, /) -> bool:
    """Say whether anything that was computed differs; what changed around the runs alone is no difference."""
    marks = (mark for rung, mark in found.ladder.items() if rung not in AROUND_RUNGS)
    joined = rows_apart(found.token_rows) or resume_apart(found.resume)
    return bool(found.findings or found.outside or found.counts.different or joined or Mark.BEYOND in marks)
