"""The same attempts, judged on both sides: where the verdicts differ is the noise of the evaluator (AT-22)."""

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from paritrace.attempts.manifest import Attempt


class JudgedTwice(Struct, frozen=True):
    """Attempts that both sides hold under one id.

    `num_both`: those that both judged, `num_agree` of them alike. `changes`: how often one verdict became another,
    `changed`: of which attempts. Nothing is said of the configurations: they are one.
    """

    num_same: int
    num_both: int
    num_agree: int
    changes: dict[str, int]
    changed: tuple[str, ...]


def judged_twice(baseline: Iterable[Attempt], candidate: Iterable[Attempt]) -> JudgedTwice | None:
    """Returns how two sides judged the attempts that they share, None where they share none that is there."""
    first = {one.attempt_id: one for one in baseline if one.present}
    second = {one.attempt_id: one for one in candidate if one.present}
    same = [name for name in first if name in second]
    if not same:
        return None
    said = {name: (verdict_of(first[name]), verdict_of(second[name])) for name in same}
    both = {name: pair for name, pair in said.items() if pair[0] and pair[1]}
    changed = tuple(name for name, (before, after) in both.items() if before != after)
    return JudgedTwice(
        num_same=len(same),
        num_both=len(both),
        num_agree=len(both) - len(changed),
        changes=dict(sorted(Counter(" -> ".join(both[name]) for name in changed).items())),
        changed=changed,
    )


def verdict_of(attempt: Attempt) -> str:
    """Returns what was said of an attempt that counts, every evaluator's word, "" where nothing was."""
    words = [
        one.verdict.value if one.score is None else f"score {one.score:g}" for one in attempt.evaluations if one.counts
    ]
    return ", ".join(words)


def apart(attempts: Sequence[Attempt]) -> tuple[Attempt, ...]:
    """Returns attempts of which no id stands in two configurations: each is counted on its own side.

    An attempt that two sides hold would else be one attempt seen twice, or a conflict. Inside a configuration nothing
    is renamed: there it *is* one or the other (AT-2).
    """
    owners: dict[str, set[str]] = {}
    for one in attempts:
        owners.setdefault(one.attempt_id, set()).add(one.configuration_id)
    return tuple(
        replace(one, attempt_id=f"{one.configuration_id}: {one.attempt_id}", retry_of=_named(one, owners))
        if len(owners[one.attempt_id]) > 1
        else one
        for one in attempts
    )


def _named(one: Attempt, owners: dict[str, set[str]]) -> str | None:
    if one.retry_of is None or len(owners.get(one.retry_of, ())) < 2:
        return one.retry_of
    return f"{one.configuration_id}: {one.retry_of}"
