"""What the comparison token by token rests on (P9)."""

from paritrace.compare.result import Comparison
from paritrace.compare.rows import Side
from paritrace.compare.token_rows_result import RowDifference, RowOutput, TokenRowsFound
from paritrace.reports.behind import Behind
from paritrace.reports.screen_rows import sentence, strength, told_choice
from paritrace.reports.wording import figure


def rows(comparison: Comparison, _part: str) -> Behind:
    """Counts of every output, each sample whose tokens part, and where the rows that are named were recorded."""
    found = comparison.token_rows
    if found is None:
        return Behind("Neither run holds rows of tokens: the scripts call no paritrace.rows().")
    named = {"first": found.first, "largest": found.largest, "first beyond": found.first_beyond}
    facts = [strength(found), *(_named(what, told) for what, told in named.items() if told is not None)]
    facts += [_output(one) for one in found.outputs]
    facts += [told_choice(choice) for choice in found.choices]
    facts += [f"{side} alone has sample {name}" for side, names in found.samples_only.items() for name in names]
    facts.append("every row: rows.parquet beside the result")
    return Behind(sentence(found), facts=tuple(facts), record_ids=_records(found))


def _named(what: str, told: RowDifference) -> str:
    error = "unknown" if told.error is None else figure(told.error)
    norm = "unknown" if told.norm_ratio is None else f"{told.norm_ratio:.9g}"
    places = "; ".join(
        f"{side} rank {at.rank}, micro-batch {at.microbatch}, row {at.row}"
        for side, at in (("baseline", told.baseline), ("candidate", told.candidate))
    )
    token = f"step {told.step}, {told.output}, sample {told.sample} position {told.position}"
    values = "" if told.values is None else f", values {told.values[0]!r} and {told.values[1]!r}"
    return f"{what}: {token}, error {error}, ratio of norms {norm}{values}; {places}"


def _output(one: RowOutput) -> str:
    largest = "" if one.largest is None else f", largest error {figure(one.largest)}"
    reasons = "".join(f", {number:,} not comparable ({why})" for why, number in one.not_comparable.items())
    scale = "" if one.scale is None else f", one factor x{one.scale:.6g}"
    return (
        f"step {one.step}, {one.output}: {one.agree:,} of {one.aligned:,} agree, {one.differ:,} differ{largest}{scale}"
        f"{reasons}, {one.after_choice:,} after another token, {one.ambiguous:,} undetermined, "
        f"{one.only_baseline:,} and {one.only_candidate:,} on one side only"
    )


def _records(found: TokenRowsFound) -> tuple[tuple[Side, int, int], ...]:
    """The module calls that gave the rows which are named."""
    named = [told for told in (found.first, found.largest, found.first_beyond) if told is not None]
    both = [
        (side, at) for told in named for side, at in ((Side.BASELINE, told.baseline), (Side.CANDIDATE, told.candidate))
    ]
    return tuple(dict.fromkeys((side, at.rank, at.call) for side, at in both if at.call >= 0))
