"""Weighs every attempt of a manifest, one after the other, into a tally per configuration (AT-2 to AT-11)."""

from collections.abc import Iterator

from msgspec import Struct

from paritrace.attempts.facts import AttemptFacts, facts_of
from paritrace.attempts.gaps import AttemptGap, Noted
from paritrace.attempts.loading import Loaded
from paritrace.attempts.manifest import Attempt, Configuration, Request
from paritrace.attempts.manifest_rules import sources_behind
from paritrace.attempts.origins import Origin
from paritrace.attempts.rate_card import RateCard
from paritrace.attempts.reading import Seen, Unusable, record_of, result_of
from paritrace.attempts.requests import RequestFacts, facts_of_request
from paritrace.attempts.sources import Sources, SourceState
from paritrace.attempts.survey import Survey, distinct, survey
from paritrace.attempts.tallies import Tally


class Assessed(Struct, frozen=True):
    """A manifest with everything that its attempts add up to. `facts()` weighs them again, for details and evidence."""

    loaded: Loaded
    sources: Sources
    surveyed: Survey
    tallies: dict[str, Tally]
    card: RateCard | None

    def facts(self) -> Iterator[AttemptFacts]:
        """Yields the facts of every attempt, each id once."""
        return weighed(self.loaded, self.sources, self.surveyed, card=self.card)


def assess(loaded: Loaded, *, card: RateCard | None = None) -> Assessed:
    """Returns what the attempts of a manifest add up to; one attempt is in memory at a time.

    Raises:
        RequestError: Refused, `path_outside`.
    """
    sources = Sources(loaded)
    surveyed = survey(loaded.attempts)
    tallies = {one.id: _tally(one, surveyed, repricing=card is not None) for one in loaded.head.configurations}
    for facts in weighed(loaded, sources, surveyed, card=card):
        attempt = facts.attempt
        tallies[attempt.configuration_id].add(facts, retried=attempt.attempt_id in surveyed.retried)
    return Assessed(loaded, sources, surveyed, tallies, card)


def _tally(configuration: Configuration, surveyed: Survey, *, repricing: bool) -> Tally:
    return Tally(configuration.id, evaluators=surveyed.evaluators.get(configuration.id, ()), repricing=repricing)


def weighed(loaded: Loaded, sources: Sources, surveyed: Survey, *, card: RateCard | None) -> Iterator[AttemptFacts]:
    """Yields the facts of every attempt, each id once."""
    for attempt in distinct(loaded.attempts, surveyed):
        requests = tuple(_weighed_request(one, sources) for one in attempt.requests)
        yield facts_of(attempt, requests, card=card, extra=_of_sources(attempt, sources))


def _weighed_request(request: Request, sources: Sources) -> RequestFacts:
    return facts_of_request(request, result=_result(request, sources), record=_record(request, sources))


def _result(request: Request, sources: Sources) -> Seen | Unusable | None:
    if request.result is None:
        return None
    data = sources.content(request.result)
    return result_of(data, origin=Origin(request.result)) if isinstance(data, bytes) else data


def _record(request: Request, sources: Sources) -> Seen | Unusable | None:
    if request.record is None:
        return None
    data = sources.content(request.record)
    return record_of(data, origin=Origin(request.record)) if isinstance(data, bytes) else data


def _of_sources(attempt: Attempt, sources: Sources) -> Iterator[Noted]:
    """What is wrong with the files from which the manifest's own figures were read: they cannot be looked up there."""
    for name in sorted(sources_behind(attempt)):
        match sources.state(name):
            case SourceState.AS_NAMED:
                pass
            case SourceState.ABSENT if not attempt.present:
                pass  # expected, and not there: the attempt itself says so
            case SourceState.ABSENT:
                yield Noted(AttemptGap.RESULT_MISSING, detail="its source is not at hand", origin=Origin(name))
            case SourceState.CHANGED | SourceState.UNREADABLE as state:
                yield Noted(AttemptGap.RESULT_INVALID, detail=f"its source is {state}", origin=Origin(name))
