"""Service level objectives: which requests keep one, and between what bounds their fraction lies: pure (IN-17).

A request keeps an objective where it succeeded and every target holds. One that failed never does. What is not known
counts as if it had missed and as if it had kept it: an outcome that nobody saw, a latency that nobody took.
"""

import re
from collections.abc import Mapping, Sequence
from math import isfinite

from msgspec import Struct

from paritrace.errors import RequestError
from paritrace.inference.comparison.absence import Absent
from paritrace.inference.comparison.metrics import ATTAINED, NAMES, Figure, Span
from paritrace.inference.comparison.vocabulary import CompareGap

MOST_OBJECTIVES = 20
_WRITTEN = re.compile(r"(?P<name>[a-z][a-z0-9_]{0,39}):(?P<targets>.+)\Z")
_TARGET = re.compile(r"(?P<metric>[a-z_]+)<=(?P<seconds>[0-9]*\.?[0-9]+)\Z")
_BETWEEN_TOKENS = "mean_between_tokens"


class Target(Struct, frozen=True):
    """A latency of a request is at most so many seconds."""

    metric: str
    seconds: float


class Objective(Struct, frozen=True):
    """Targets that have to hold together, under a name: `interactive` gives the metric `attained.interactive`."""

    name: str
    targets: tuple[Target, ...]

    @property
    def metric(self) -> str:
        """The name of its metric."""
        return f"{ATTAINED}.{self.name}"


def objective_of(text: str, /) -> Objective:
    """Returns an objective as it is written: `interactive:time_to_first_output<=0.5,mean_between_tokens<=0.05`.

    Raises:
        RequestError: Refused, `bad_objective`.
    """
    written = _WRITTEN.match(text.replace(" ", ""))
    if written is None:
        raise _bad(text, "write NAME:METRIC<=SECONDS,… with a name of small letters, digits and _")
    targets = tuple(_target(text, one) for one in written["targets"].split(","))
    if len({one.metric for one in targets}) < len(targets):
        raise _bad(text, "name each metric once")
    return Objective(written["name"], targets)


def objectives_of(texts: Sequence[str], /) -> tuple[Objective, ...]:
    """Returns objectives of different names; raises as `objective_of`."""
    found = tuple(objective_of(text) for text in texts)
    for place, one in enumerate(found):
        if place >= MOST_OBJECTIVES or one.name in {earlier.name for earlier in found[:place]}:
            raise _bad(texts[place], f"give each its own name, and at most {MOST_OBJECTIVES}")
    return found


def _target(text: str, written: str) -> Target:
    found = _TARGET.match(written)
    if found is None or found["metric"] not in set(NAMES.values()):
        raise _bad(text, f"write METRIC<=SECONDS with one of {', '.join(NAMES.values())}")
    seconds = float(found["seconds"])
    if not isfinite(seconds) or seconds <= 0:
        raise _bad(text, "a target is some seconds above 0")
    return Target(found["metric"], seconds)


def _bad(text: str, fix: str) -> RequestError:
    return RequestError(f"{text[:200]!r} is no objective", code="bad_objective", fix=fix)


class Attained:
    """Counts the successful requests of a run that keep an objective, and those of which it cannot be said."""

    def __init__(self, objective: Objective, /) -> None:
        self.objective = objective
        self._kept = self._undetermined = 0

    def take(self, seconds: Mapping[str, float], /, *, output_tokens: int | None) -> None:
        """Takes one successful request; `seconds` has what was measured of it, by metric."""
        undetermined = False
        for target in self.objective.targets:
            value = seconds.get(target.metric)
            if value is None:
                alone = output_tokens is not None and output_tokens <= 1  # nothing lies between tokens of one
                undetermined |= not (alone and target.metric == _BETWEEN_TOKENS)
            elif value > target.seconds:
                return
        self._undetermined += undetermined
        self._kept += not undetermined

    def figure(self, *, num_offered: int, num_unknown: int) -> Figure:
        """Returns the fraction of what was offered, as bounds; `num_unknown`: requests whose outcome is not known."""
        if not num_offered:
            return Absent(CompareGap.NO_REQUESTS)
        most = self._kept + self._undetermined + num_unknown
        return Span(self._kept / num_offered, most / num_offered)
