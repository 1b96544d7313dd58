"""Draws one request on one clock: how each party tells it, its stages, the iterations that served it (SU-10, IN-3)."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from paritrace.evidence.ids import Ref
from paritrace.inference.context import ClockKind
from paritrace.inference.records import Iteration, Request, Stage
from paritrace.inference.served_result import ServedIn
from paritrace.reports.html.known import duration
from paritrace.reports.html.lanes import Lanes, Named, Stretch, lanes
from paritrace.reports.wording import count

MOST_PARTIES = 8
MOST_STAGES = 8
MOST_ROLES = 6

Address = Callable[[Ref], str]
Timed = Request | Stage | Iteration


def request_lanes(
    requests: Sequence[Request],
    stages: Sequence[Stage],
    *,
    served: Sequence[ServedIn],
    iterations: Mapping[Ref, Iteration],
    address: Address,
) -> Lanes | None:
    """Returns the timeline by the clock that most of it has; what another clock measured is counted, never moved.

    Args:
        address: where an iteration's evidence is.
    """
    found: list[Timed] = [*requests, *stages, *iterations.values()]
    timed = [one for one in found if one.start_ns is not None and one.end_ns is not None]
    clocks = Counter(one.context.facts.clock_domain for one in timed)
    if not clocks:
        return None
    clock = max(sorted(clocks), key=lambda name: clocks[name])
    named = [
        *_by_name(((one.context.facts.source, one) for one in requests), "party", MOST_PARTIES, clock=clock),
        *_by_name(((one.name, one) for one in stages), "stage", MOST_STAGES, clock=clock),
        *_by_role(served, iterations, address, clock=clock),
    ]
    others = clocks.total() - clocks[clock]
    without = len(requests) + len(stages) + len(served) - sum(len(held) for _, _, held in named) - others
    return lanes(named, said=tuple(_said(clock, _kind(timed, clock), others=others, without=max(0, without))))


def _by_name(found: Iterable[tuple[str, Request | Stage]], kind: str, most: int, *, clock: str) -> Iterator[Named]:
    held: dict[str, list[Stretch]] = {}
    for name, one in found:
        place = _place(one, clock)
        if place is not None:
            held.setdefault(name, []).append(Stretch(*place, name + _took(one, place)))
    for name, stretches in list(held.items())[:most]:
        yield name, kind, stretches


def _by_role(
    served: Sequence[ServedIn], iterations: Mapping[Ref, Iteration], address: Address, *, clock: str
) -> Iterator[Named]:
    held: dict[str, list[Stretch]] = {}
    for one in served:
        known = iterations.get(one.iteration)
        place = None if known is None else _place(known, clock)
        if known is not None and place is not None:
            told = f"iteration {one.iteration.id}, {one.role}{_took(known, place)}"
            members = f"{count(one.members, 'request')} in it"
            held.setdefault(one.role, []).append(Stretch(*place, f"{told}, {members}", address(one.iteration)))
    for role, stretches in list(held.items())[:MOST_ROLES]:
        yield f"iterations, {role}", "iteration", stretches


def _place(one: Timed, clock: str) -> tuple[int, int] | None:
    if one.start_ns is None or one.end_ns is None or one.context.facts.clock_domain != clock:
        return None
    return one.start_ns, one.end_ns


def _took(one: Timed, place: tuple[int, int]) -> str:
    """Only a monotonic clock gives a duration."""
    is_measured = one.context.facts.clock_kind is ClockKind.MONOTONIC
    return f", {duration(place[1] - place[0])}" if is_measured else ""


def _kind(timed: Sequence[Timed], clock: str) -> ClockKind:
    return next(one.context.facts.clock_kind for one in timed if one.context.facts.clock_domain == clock)


def _said(clock: str, kind: ClockKind, *, others: int, without: int) -> Iterator[str]:
    if kind is ClockKind.MONOTONIC:
        yield f"By the clock {clock}."
    else:
        yield f"By the {kind.value} clock {clock}: where things lie on it, not how long they took (not monotonic)."
    if others:
        yield f"Not drawn: {others:,} measured by another clock. Times of two clocks are never set side by side."
    if without:
        yield f"Not drawn: {without:,} without times, or beyond what a page draws."
