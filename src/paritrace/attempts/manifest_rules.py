"""What has to hold of a whole manifest beyond the types of its fields (AT-1): pure, every problem at once."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from math import isfinite

from paritrace.attempts.manifest import Attempt, Configuration, Manifest, VerdictKind

MOST_PROBLEMS = 50  # told at once; a manifest with more is mended in rounds


class Rules:
    """Checks the attempts of a manifest one by one against its head."""

    def __init__(self, head: Manifest) -> None:
        self._sources = {one.id for one in head.sources}
        self._configurations = {one.id for one in head.configurations}
        self._used: set[str] = set()
        self._ids: set[str] = set()
        self._retries: list[tuple[str, str]] = []

    def of_attempt(self, attempt: Attempt, *, number: int) -> Iterator[str]:
        """Yields what is wrong with one entry."""
        place = f"attempts[{number}] ({attempt.attempt_id})"
        seen_before = attempt.attempt_id in self._ids
        self._ids.add(attempt.attempt_id)
        if attempt.configuration_id not in self._configurations:
            yield f"{place}: there is no configuration {attempt.configuration_id}"
        if attempt.retry_of == attempt.attempt_id:
            yield f"{place}.retry_of: is the attempt itself"
        elif attempt.retry_of is not None:
            self._retries.append((place, attempt.retry_of))
        yield from self._of_evaluations(attempt, place)
        yield from self._of_requests(attempt, place, again=seen_before)
        for source in _sources_of(attempt):
            if source not in self._sources:
                yield f"{place}: there is no source {source}"

    def at_end(self) -> Iterator[str]:
        """Yields what only the whole list shows."""
        for place, name in self._retries:
            if name not in self._ids:
                yield f"{place}.retry_of: there is no attempt {name}"

    def _of_evaluations(self, attempt: Attempt, place: str) -> Iterator[str]:
        for number, one in enumerate(attempt.evaluations):
            if (one.verdict is VerdictKind.SCORE) != (one.score is not None):
                yield f"{place}.evaluations[{number}]: a score stands with the verdict `score`, and only there"
            elif one.score is not None and not isfinite(one.score):
                yield f"{place}.evaluations[{number}].score: is no finite number"

    def _of_requests(self, attempt: Attempt, place: str, *, again: bool) -> Iterator[str]:
        for name, count in Counter(one.request_id for one in attempt.requests).items():
            if count > 1:
                yield f"{place}: request {name} is listed {count} times"
        for one in attempt.requests:
            if one.accounting is not None and (one.result is not None or one.record is not None):
                yield f"{place}: request {one.request_id} has files and an accounting of its own; give one of them"
            for used in (one.result, one.record):
                if used is not None and used in self._used and not again:
                    yield f"{place}: source {used} stands for two requests"
                if used is not None:
                    self._used.add(used)


def problems_of_head(head: Manifest) -> Iterator[str]:
    """Yields what is wrong with everything but the attempts."""
    for name, ids in (("sources", [one.id for one in head.sources]), ("configurations", _ids(head.configurations))):
        for one, count in Counter(ids).items():
            if count > 1:
                yield f"{name}: {one} is there {count} times"
    if head.primary is not None:
        known = set(_ids(head.configurations))
        for side in ("baseline", "candidate"):
            name = head.primary.baseline if side == "baseline" else head.primary.candidate
            if name not in known:
                yield f"primary.{side}: there is no configuration {name}"
        if head.primary.baseline == head.primary.candidate:
            yield "primary: names one configuration twice"
    for name, (low, high) in head.score_ranges.items():
        if not (isfinite(low) and isfinite(high) and low < high):
            yield f"score_ranges.{name}: is no range"


def first_problems(problems: Iterable[str]) -> tuple[str, ...]:
    """Returns the first problems; the last line says that there are more."""
    found = tuple(islice(problems, MOST_PROBLEMS + 1))
    return (*found[:MOST_PROBLEMS], "and more") if len(found) > MOST_PROBLEMS else found


def _ids(configurations: tuple[Configuration, ...]) -> list[str]:
    return [one.id for one in configurations]


def _sources_of(attempt: Attempt) -> set[str]:
    """Every source that an attempt names."""
    places = [attempt.origin, attempt.stop.origin, *(one.origin for one in attempt.evaluations)]
    places += [one.origin for one in attempt.invocations] + [one.origin for one in attempt.resources]
    if attempt.accounting is not None:
        places.append(attempt.accounting.origin)
    for request in attempt.requests:
        places.append(request.origin)
        if request.accounting is not None:
            places.append(request.accounting.origin)
    named = {one.source for one in places if one is not None}
    files = {name for one in attempt.requests for name in (one.result, one.record) if name is not None}
    return named | files


def sources_behind(attempt: Attempt) -> set[str]:
    """Returns the ids of the sources from which the manifest's own figures of an attempt were read."""
    return _sources_of(attempt) - {
        name for one in attempt.requests for name in (one.result, one.record) if name is not None
    }
