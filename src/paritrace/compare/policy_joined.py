"""Rules of a policy about rows of tokens and the boundary of a resume (CP-13, CP-27, CP-28): pure."""

from paritrace.compare.joined_outcomes import parts_of, resume_apart, resume_unknown, rows_apart, rows_unknown
from paritrace.compare.policy import ResumeAgrees, RowsAgree, RulePlace, Verdict
from paritrace.compare.result import Comparison, Mark
from paritrace.compare.resume_result import ResumePart
from paritrace.compare.token_rows_result import RowDifference, TokenRowsFound

Told = tuple[Verdict, str, RulePlace | None]


def rows_agree(comparison: Comparison, rule: RowsAgree) -> Told:
    """Rows that differ break it, or those beyond the envelope; rows that cannot be told leave it undetermined."""
    found = comparison.token_rows
    if found is None:
        return Verdict.UNDETERMINED, "neither run holds rows of tokens", None
    inside = rule.at_least == Mark.INSIDE.value
    told = _rows(found)
    if rows_apart(found, inside=inside):
        first = found.first_beyond if inside and found.first_beyond is not None else found.first
        return Verdict.FAIL, told, None if first is None else row_place(first)
    unknown = rows_unknown(found, inside=inside)
    return (Verdict.UNDETERMINED if unknown else Verdict.PASS), told, None


def _rows(found: TokenRowsFound) -> str:
    parts = [f"{found.aligned:,} rows side by side: {found.agree:,} agree, {found.differ:,} differ"]
    parts += [f"{found.beyond:,} of {found.judged:,} judged are beyond"] if found.judged else []
    parts += [f"tokens of {found.num_choices:,} samples part"] if found.num_choices else []
    unknown = rows_unknown(found)
    return "; ".join([*parts, *([f"{unknown:,} cannot be told"] if unknown else [])])


def row_place(told: RowDifference) -> RulePlace:
    """Where a row stands; its token is in the slot's name."""
    return RulePlace(
        told.candidate.rank,
        told.step,
        told.candidate.microbatch,
        slot=f"{told.output} of sample {told.sample}, position {told.position}",
        baseline_record_id=told.baseline.call,
        candidate_record_id=told.candidate.call,
    )


def resume_agrees(comparison: Comparison, rule: ResumeAgrees) -> Told:
    """Values that a resumed run began with otherwise; those that one side alone has leave it undetermined."""
    found = comparison.resume
    if found is None:
        return Verdict.UNDETERMINED, "the candidate was not compared as a resumed run (--resume STEP)", None
    parts = parts_of(found, rule.group)
    unknown = resume_unknown(found, group=rule.group)
    told = f"before step {found.step}: {sum(part.agree for part in parts):,} values agree, "
    told += f"{sum(part.differ for part in parts):,} differ, {unknown:,} cannot be told"
    if resume_apart(found, group=rule.group):
        part = next(part for part in parts if part.differ)
        return Verdict.FAIL, f"{told}; the first part: {part.group}", _boundary(part, found.step)
    return (Verdict.UNDETERMINED if unknown else Verdict.PASS), told, None


def _boundary(part: ResumePart, step: int) -> RulePlace | None:
    state = next((state for state in part.states if not state.idle), None)
    return None if state is None else RulePlace(state.ranks[0], step, slot=f"{part.group} {state.name}")
