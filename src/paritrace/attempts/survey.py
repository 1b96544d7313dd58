"""The first look at all attempts of a manifest: ids, tasks, who judged, which attempts were tried again: pure."""

from collections.abc import Callable, Iterable, Iterator

import msgspec
from msgspec import Struct

from paritrace.attempts.gaps import AttemptGap, Noted
from paritrace.attempts.identity import Identities, identities_of
from paritrace.attempts.manifest import Attempt, Evaluator
from paritrace.attempts.states import evaluators_of

Again = Callable[[], Iterable[Attempt]]  # the attempts of a manifest, from the beginning, as often as they are needed


class Survey(Struct, frozen=True):
    """What has to be known of all attempts before any is counted. `retried`: ids that a later attempt stands in for."""

    identities: Identities
    evaluators: dict[str, tuple[Evaluator, ...]]  # by configuration
    retried: frozenset[str]
    num_attempts: int  # different ids


def survey(attempts: Again) -> Survey:
    """Returns the survey of all attempts; whatever their order, it is the same."""
    evaluators: dict[str, set[Evaluator]] = {}
    retried: set[str] = set()
    ids: set[str] = set()
    identities = identities_of(attempts())
    for attempt in attempts():
        ids.add(attempt.attempt_id)
        judges = evaluators.setdefault(attempt.configuration_id, set())
        if attempt.attempt_id not in identities.conflicting:
            judges |= evaluators_of(attempt)
            if attempt.retry_of is not None:
                retried.add(attempt.retry_of)
    return Survey(
        identities,
        {name: tuple(sorted(found, key=evaluator_key)) for name, found in evaluators.items()},
        frozenset(retried & ids),
        len(ids),
    )


def evaluator_key(evaluator: Evaluator) -> tuple[str, str]:
    """Returns by what evaluators are sorted."""
    return evaluator.id, evaluator.version or ""


def distinct(attempts: Again, surveyed: Survey) -> Iterator[Attempt]:
    """Yields every id once: of repeated entries one, of conflicting ones a stand-in without any evidence (AT-2)."""
    held: dict[str, list[Attempt]] = {}
    for attempt in attempts():
        if attempt.attempt_id in surveyed.identities.conflicting or attempt.attempt_id in surveyed.identities.repeated:
            held.setdefault(attempt.attempt_id, []).append(attempt)
        else:
            yield attempt
    for name in sorted(held):
        if name in surveyed.identities.conflicting:
            yield from _stand_ins(held[name])
        else:
            yield min(held[name], key=_encoded)


def _stand_ins(entries: list[Attempt]) -> Iterator[Attempt]:
    """One attempt without evidence wherever contradicting records place it, so that no planned one is lost."""
    places: dict[tuple[str, str, str], Attempt] = {}
    for one in sorted(entries, key=_encoded):
        places.setdefault((one.configuration_id, one.task_id, one.task_revision), one)
    for place in sorted(places):
        yield _stand_in(places[place], entries)


def _encoded(attempt: Attempt) -> bytes:
    return msgspec.json.encode(attempt, order="sorted")


def _stand_in(attempt: Attempt, entries: list[Attempt]) -> Attempt:
    """An attempt of which contradicting records exist: it is planned, and nothing that they say is chosen."""
    origins = sorted({one.origin for one in entries if one.origin is not None}, key=msgspec.json.encode)
    told = f"{len(entries)} records"
    noted = (  # one conflict, whatever the number of its records
        Noted(AttemptGap.IDENTITY_CONFLICT, count=int(not place), detail=told, origin=origin)
        for place, origin in enumerate(origins or [None])
    )
    return Attempt(
        attempt_id=attempt.attempt_id,
        configuration_id=attempt.configuration_id,
        task_id=attempt.task_id,
        task_revision=attempt.task_revision,
        relation=attempt.relation,
        gaps=tuple(noted),
        origin=attempt.origin,
    )
