"""What rows of tokens and the boundary of a resume come to: apart, or not to be told (CP-13, CP-27, CP-28): pure."""

from fnmatch import fnmatchcase

from paritrace.compare.resume_result import ResumeFound, ResumePart
from paritrace.compare.token_rows_result import TokenRowsFound


def rows_apart(found: TokenRowsFound | None, /, *, inside: bool = False) -> bool:
    """Whether the runs part token by token.

    Args:
        inside: what an envelope explains is no difference; another token, and NaN on one side alone, always is.
    """
    if found is None:
        return False
    other = found.num_choices or any(one.non_finite for one in found.outputs)
    return bool(other or (found.beyond if inside else found.differ))


def rows_unknown(found: TokenRowsFound | None, /, *, inside: bool = False) -> int:
    """How many rows could not be told: without a counterpart, not comparable, recorded unlike; with `inside` also those
    that differ where no envelope judges rows. Rows behind another token are consequences and no doubt."""
    if found is None:
        return 0
    alone = max(found.only_baseline + found.only_candidate, found.tokens[1] + found.tokens[2])
    unjudged = found.differ if inside and not found.judged else 0
    unlike = found.ambiguous + sum(found.not_comparable.values()) + found.undefined
    return alone + unlike + unjudged + (not found.aligned)


def resume_apart(found: ResumeFound | None, /, *, group: str = "*") -> bool:
    """Whether something that a resumed run began with is not what its continuation began with."""
    return any(part.differ for part in parts_of(found, group))


def resume_unknown(found: ResumeFound | None, /, *, group: str = "*") -> int:
    """How many values of the boundary one side alone has or left as a gap, ranks without a session among them."""
    if found is None:
        return 0
    parts = parts_of(found, group)
    compared = any(part.agree or part.differ or part.idle for part in parts)
    return sum(part.unknown for part in parts) + len(found.ranks_missing) + (not compared)


def parts_of(found: ResumeFound | None, group: str, /) -> list[ResumePart]:
    """The parts of the inventory whose group is like a shell pattern."""
    return [] if found is None else [part for part in found.parts if fnmatchcase(part.group, group)]
