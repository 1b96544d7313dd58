"""Times of attempts in three scopes that are never combined (AT-11): pure."""

from collections.abc import Iterable

from msgspec import Struct

from paritrace.attempts.manifest import Attempt, Invocation

NS = 1_000_000_000


class InvocationTimes(Struct, frozen=True):
    """Invocations of one attempt. Overlapping ones are never added: the union of what they cover is.

    `seconds`: each one's own, by its monotonic clock where there is one, else by its wall clock; None is not recorded.
    `union_seconds` is None where an invocation has no start or no end, `num_overlapping` counts those that run beside
    another one.
    """

    seconds: tuple[float | None, ...]
    union_seconds: float | None
    num_overlapping: int


class Times(Struct, frozen=True):
    """The times of one attempt. `remarks` says where scopes contradict each other; none is corrected."""

    task_seconds: float | None
    invocations: InvocationTimes
    resource_observed_unix_ns: tuple[int, ...]
    remarks: tuple[str, ...] = ()


def times_of(attempt: Attempt) -> Times:
    """Returns the times of an attempt, scope by scope."""
    own = tuple(one.invocation for one in attempt.requests if one.invocation is not None)
    invocations = invocation_times((*attempt.invocations, *own))
    observed = [one.observed_unix_ns for one in attempt.resources]
    observed += [one.observed_unix_ns for request in attempt.requests for one in request.resources]
    return Times(
        attempt.duration_seconds,
        invocations,
        tuple(sorted(one for one in observed if one is not None)),
        tuple(_remarks(attempt.duration_seconds, invocations)),
    )


def invocation_times(invocations: Iterable[Invocation]) -> InvocationTimes:
    """Returns what invocations took one by one, and the union of the time they cover."""
    listed = sorted(invocations, key=lambda one: (one.started_unix_ns or 0, one.ended_unix_ns or 0))
    spans = [(one.started_unix_ns, one.ended_unix_ns) for one in listed]
    whole = [(start, end) for start, end in spans if start is not None and end is not None and end >= start]
    union, overlapping = _union(whole)
    return InvocationTimes(
        tuple(_seconds(one) for one in listed),
        union / NS if listed and len(whole) == len(listed) else None,
        overlapping,
    )


def _seconds(invocation: Invocation) -> float | None:
    if invocation.elapsed_seconds is not None:
        return invocation.elapsed_seconds
    if invocation.started_unix_ns is None or invocation.ended_unix_ns is None:
        return None
    taken = invocation.ended_unix_ns - invocation.started_unix_ns
    return taken / NS if taken >= 0 else None  # a clock that stepped back measured nothing


def _union(spans: list[tuple[int, int]]) -> tuple[int, int]:
    """The nanoseconds that sorted spans cover, and how many of them run beside another one."""
    covered, overlapping, beside = 0, 0, False
    reached: int | None = None
    for start, end in spans:
        overlaps = reached is not None and start < reached
        overlapping += overlaps + (overlaps and not beside)
        beside = overlaps
        covered += max(0, end - (start if reached is None else max(start, reached)))
        reached = end if reached is None else max(reached, end)
    return covered, overlapping


def _remarks(task_seconds: float | None, invocations: InvocationTimes) -> Iterable[str]:
    if task_seconds is not None and invocations.union_seconds is not None and invocations.union_seconds > task_seconds:
        yield "its invocations cover more time than the caller's task duration: the scopes do not fit"
