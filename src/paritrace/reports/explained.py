"""Finds what an id of a comparison rests on: one table of what can be explained (P9)."""

from collections.abc import Callable

from paritrace.compare.result import Comparison
from paritrace.compare.rows import Side
from paritrace.reports import (
    behind_causes,
    behind_counts,
    behind_folds,
    behind_ladder,
    behind_places,
    behind_resume,
    behind_rows,
    screen_policy,
    screen_repeats,
    screen_review,
)
from paritrace.reports.behind import Behind, unknown_id

_SECTIONS: dict[str, Callable[[Comparison, str], Behind]] = {
    "result": behind_counts.result,
    "first": behind_places.first,
    "where": behind_places.first,
    "size": behind_places.first,
    "settled": behind_places.settled,
    "ladder": behind_ladder.ladder,
    "folds": behind_folds.folds,
    "ratios": behind_folds.ratios,
    "repeats": screen_repeats.repeats,
    "resume": behind_resume.resume,
    "rows": behind_rows.rows,
    "changed": behind_causes.changed,
    "outside": behind_causes.outside_states,
    "one_sided": behind_causes.one_sided,
    "groups": behind_causes.collectives,
    "findings": behind_causes.findings,
    "counts": behind_counts.counts,
    "undetermined": behind_counts.undetermined,
    "not_seen": behind_counts.not_seen,
    "coverage": behind_counts.coverage,
    "limits": behind_counts.limits,
    "rules": screen_policy.rules,
    "review": screen_review.review,
    "next": behind_counts.next_commands,
    "kept": behind_counts.kept,
}
_TAKES_A_PART = frozenset({"ladder", "counts", "undetermined"})


def behind(comparison: Comparison, identity: str, /) -> Behind:
    """Returns what `identity` rests on: `F1`, `ladder.forward`, `counts.paired`, `changed`, `baseline:123` and so on.

    Raises:
        RequestError: Refused, `no_such_id`.
    """
    findings = {finding.id: finding for finding in comparison.findings}
    head, _, rest = identity.partition(".")
    if identity in findings:
        return behind_places.finding(findings[identity])
    if head in _SECTIONS and not (rest and head not in _TAKES_A_PART):
        return _SECTIONS[head](comparison, rest)
    side, _, number = identity.rpartition(":")
    if side.partition(":")[0] in set(Side) and number.isascii() and number.isdigit() and len(number) <= 18:
        return _call(side, int(number))
    raise unknown_id(identity, [*findings, *_SECTIONS])


def _call(place: str, record_id: int) -> Behind:
    side, _, session = place.partition(":")
    rows: dict[str, object] = {"side": side, "record_id": record_id}
    if session:
        rows["session_id"] = session
    return Behind(f"call {record_id} of the {side}", rows=rows, is_call=True)
