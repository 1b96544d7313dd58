"""Several logs of one Inspect task: which samples are one attempt, copied, and which are tries again (AT-2)."""

from collections import defaultdict
from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from paritrace.attempts.manifest import Attempt, Relation

Key = tuple[str, str, int]  # the task's identity, the sample, the epoch


class Found(Struct, frozen=True):
    """An attempt of one log. `run` and `created` are its log's; `sample_sha256` is of the sample alone."""

    attempt: Attempt
    key: Key
    run: str
    created: str
    sample_sha256: str


def resolved(found: Iterable[Found]) -> list[Attempt]:
    """Returns the attempts of all logs of one configuration.

    `eval-retry` writes a new run of the same task: it copies what had finished, which is the same attempt seen twice,
    and tries again what had failed. A sample that one log misses and another log of the task holds is not missing. Two
    logs of one run are left as they are: two contents of one attempt are a conflict (D-05).
    """
    groups: dict[Key, list[Found]] = defaultdict(list)
    for one in found:
        groups[one.key].append(one)
    attempts: list[Attempt] = []
    for group in groups.values():
        attempts += _of_one(group)
    return attempts


def _of_one(group: list[Found]) -> Iterable[Attempt]:
    present = [one for one in group if one.attempt.present]
    if not present:
        runs = {one.run: one.attempt for one in group}
        return list(runs.values())[-1:] if len(runs) > 1 else [one.attempt for one in group]
    if len({one.run for one in present}) == 1:
        return [one.attempt for one in present]
    return _tries(sorted(present, key=lambda one: one.created))


def _tries(present: list[Found]) -> Iterable[Attempt]:
    seen: dict[str, Attempt] = {}
    last: Attempt | None = None
    for one in present:
        if one.sample_sha256 in seen:
            yield seen[one.sample_sha256]
            continue
        attempt = one.attempt
        if last is not None:
            attempt = replace(attempt, relation=Relation.RETRY_ON_ERROR, retry_of=last.attempt_id)
        seen[one.sample_sha256] = last = attempt
        yield attempt
