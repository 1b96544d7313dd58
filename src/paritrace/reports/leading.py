"""Which statement leads the screen, where it is not the first finding (CP-27, CP-28, CP-29)."""

from paritrace.compare.result import Comparison, Mark


def is_boundary(comparison: Comparison) -> bool:
    """Whether the state at the boundary of a resume leads: it differs there, or nothing differs behind it."""
    found = comparison.resume
    return found is not None and (any(part.differ for part in found.parts) or not comparison.findings)


def is_rows(comparison: Comparison) -> bool:
    """Whether rows of tokens lead: the batches are unlike, so that calls differ by what they were given."""
    found = comparison.token_rows
    unlike = found is not None and found.aligned > 0 and comparison.ladder.get("data") is Mark.BEYOND
    return unlike and not is_boundary(comparison)


def is_finding(comparison: Comparison) -> bool:
    """Whether the first finding leads, if there is one."""
    return not is_boundary(comparison) and not is_rows(comparison)
