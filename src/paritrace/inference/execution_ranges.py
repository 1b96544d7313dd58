"""Names of ranges that mark a step: of a profiler, of an engine, or of a program that says so (IN-10, IN-12)."""

import re
from enum import StrEnum
from fnmatch import fnmatchcase

from msgspec import Struct

from paritrace.evidence.ids import Ref

_COUNTS = re.compile(
    r"execute_context_(?P<context_requests>\d{1,9})\((?P<context_tokens>\d{1,12})\)"
    r"_generation_(?P<generation_requests>\d{1,9})\((?P<generation_tokens>\d{1,12})\)\Z"
)
_OLDER = re.compile(r"execute_new_(?P<new>\d{1,9})_cached_(?P<cached>\d{1,9})\Z")
_PROFILER_STEP = re.compile(r"ProfilerStep\s?#\s?\d{1,18}\Z")
_NAMED = ("paritrace.iteration/", "stormlog.iteration/")


class RangeKind(StrEnum):
    """What kind of range marks an iteration."""

    PROFILER_STEP = "profiler_step"
    ENGINE_STEP = "engine_step"  # an engine's own mark, which holds how much was scheduled
    NAMED = "named"  # by a prefix that says so
    ASKED = "asked"  # by a pattern that the user gave


class Scheduled(Struct, frozen=True, order=True):
    """What an engine says it scheduled in one step; older engines tell no tokens."""

    context_requests: int
    context_tokens: int | None
    generation_requests: int
    generation_tokens: int | None


def kind_of_range(name: str, /, *, pattern: str | None = None) -> RangeKind | None:
    """Return what makes this range an iteration of its trace, None where nothing does.

    Args:
        pattern: names like it mark iterations too (`*`, `?` and `[...]` as in file names).
    """
    if _PROFILER_STEP.match(name):
        return RangeKind.PROFILER_STEP
    if _COUNTS.match(name) or _OLDER.match(name):
        return RangeKind.ENGINE_STEP
    if name.startswith(_NAMED):
        return RangeKind.NAMED
    return RangeKind.ASKED if pattern is not None and fnmatchcase(name, pattern) else None


def iteration_named(name: str, /) -> Ref | None:
    """Return the iteration that the name of a range gives, as PREFIX PRODUCER/ID; None where it gives none."""
    for prefix in _NAMED:
        producer, _, number = name.removeprefix(prefix).rpartition("/")
        if name.startswith(prefix) and producer and number:
            return Ref(producer, number)
    return None


def scheduled_in(name: str, /) -> Scheduled | None:
    """Return what the name of a range tells of its step, None where it tells nothing."""
    found = _COUNTS.match(name)
    if found is not None:
        return Scheduled(
            context_requests=int(found["context_requests"]),
            context_tokens=int(found["context_tokens"]),
            generation_requests=int(found["generation_requests"]),
            generation_tokens=int(found["generation_tokens"]),
        )
    older = _OLDER.match(name)
    if older is None:
        return None
    return Scheduled(
        context_requests=int(older["new"]),
        context_tokens=None,
        generation_requests=int(older["cached"]),
        generation_tokens=None,
    )
