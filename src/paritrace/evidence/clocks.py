"""Comparing times: only within one domain or through one recorded alignment, else not comparable (EV-4)."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import assert_never

from msgspec import Struct

from paritrace.evidence.gaps import Gap
from paritrace.evidence.ids import ProcessIdentity


class ClockGap(StrEnum):
    """Why two times cannot be compared, or why there is no duration."""

    NO_ALIGNMENT = "clock_no_alignment"
    SEVERAL_ALIGNMENTS = "clock_several_alignments"
    OUTSIDE_VALIDITY = "clock_outside_validity"
    NOT_MONOTONIC = "clock_not_monotonic"
    STEPPED_BACK = "clock_stepped_back"


class DomainKind(StrEnum):
    WALL = "unix_epoch_ns"
    MONOTONIC = "monotonic_ns"
    DEVICE = "device"
    TRACE = "trace"


class ClockDomain(Struct, frozen=True, order=True, forbid_unknown_fields=True):
    """A clock by name: `HOST/BOOT/unix_epoch_ns`, `HOST/BOOT/monotonic_ns`, a device's or a trace's own."""

    kind: DomainKind
    name: str


class Instant(Struct, frozen=True, forbid_unknown_fields=True):
    domain: ClockDomain
    ns: int


class Alignment(Struct, frozen=True, forbid_unknown_fields=True):
    """A recorded relation of two clocks: `target = source + offset_ns`, within `uncertainty_ns`, for source times in
    the closed interval `valid_from_ns` to `valid_to_ns`."""

    source: ClockDomain
    target: ClockDomain
    offset_ns: int
    uncertainty_ns: int
    valid_from_ns: int
    valid_to_ns: int


class Placed(Struct, frozen=True):
    """A time in another domain, and how sure that is."""

    instant: Instant
    uncertainty_ns: int


def wall_domain(of: ProcessIdentity) -> ClockDomain:
    """Return the wall domain of a process.

    Without a readable boot id the domain carries the process itself, so that nothing shares it (EV-20).
    """
    return ClockDomain(kind=DomainKind.WALL, name=f"{_host_and_boot(of)}/{DomainKind.WALL.value}")


def monotonic_domain(of: ProcessIdentity) -> ClockDomain:
    """Return the monotonic domain of a process; see `wall_domain` for a host without a boot id."""
    return ClockDomain(kind=DomainKind.MONOTONIC, name=f"{_host_and_boot(of)}/{DomainKind.MONOTONIC.value}")


def duration_ns(start: Instant, end: Instant) -> int | Gap[ClockGap]:
    """Return the nanoseconds between two times of one monotonic domain, else the reason why there is none."""
    if start.domain != end.domain:
        return Gap(ClockGap.NO_ALIGNMENT, f"{start.domain.name} and {end.domain.name}")
    match start.domain.kind:
        case DomainKind.MONOTONIC | DomainKind.DEVICE | DomainKind.TRACE:
            passed = end.ns - start.ns
            return passed if passed >= 0 else Gap(ClockGap.STEPPED_BACK, f"by {-passed} ns")
        case DomainKind.WALL:
            return Gap(ClockGap.NOT_MONOTONIC, start.domain.name)
        case _:
            assert_never(start.domain.kind)


def stepped_back(*, wall_start_ns: int, wall_end_ns: int) -> bool:
    """Say whether a wall clock went backwards between two readings of one process, to be reported (EV-4)."""
    return wall_end_ns < wall_start_ns


def place(instant: Instant, domain: ClockDomain, alignments: Iterable[Alignment]) -> Placed | Gap[ClockGap]:
    """Return `instant` in `domain`.

    Exactly one covering alignment is used, else the composition along the one path of covering alignments, with
    the uncertainties added; several ways or none give a gap. An alignment works in both directions.
    """
    if instant.domain == domain:
        return Placed(instant=instant, uncertainty_ns=0)
    edges = tuple(alignments)
    start = Placed(instant=instant, uncertainty_ns=0)
    direct = [found for found in _steps(start, edges) if found.instant.domain == domain]
    if len(direct) == 1:
        return direct[0]
    if direct:
        return Gap(ClockGap.SEVERAL_ALIGNMENTS, f"{len(direct)} cover this time")
    arrivals = _arrivals(start, domain, edges=edges, seen=frozenset({instant.domain}))
    first, second = next(arrivals, None), next(arrivals, None)
    if first is None:
        return _why_none(instant, domain, edges)
    return first if second is None else Gap(ClockGap.SEVERAL_ALIGNMENTS, "more than one path of alignments")


def _arrivals(
    at: Placed, domain: ClockDomain, *, edges: tuple[Alignment, ...], seen: frozenset[ClockDomain]
) -> Iterator[Placed]:
    """Yield `at` carried to `domain` along every path that visits no domain twice; the caller takes at most two."""
    for step in _steps(at, edges):
        if step.instant.domain == domain:
            yield step
        elif step.instant.domain not in seen:
            yield from _arrivals(step, domain, edges=edges, seen=seen | {step.instant.domain})


def _steps(at: Placed, edges: tuple[Alignment, ...]) -> Iterator[Placed]:
    for edge in edges:
        if edge.source == at.instant.domain and _covers(edge, at.instant.ns):
            yield _moved(at, edge.target, edge.offset_ns, edge.uncertainty_ns)
        elif edge.target == at.instant.domain and _covers(edge, at.instant.ns - edge.offset_ns):
            yield _moved(at, edge.source, -edge.offset_ns, edge.uncertainty_ns)


def _moved(at: Placed, domain: ClockDomain, offset_ns: int, uncertainty_ns: int) -> Placed:
    instant = Instant(domain=domain, ns=at.instant.ns + offset_ns)
    return Placed(instant=instant, uncertainty_ns=at.uncertainty_ns + uncertainty_ns)


def _covers(edge: Alignment, source_ns: int) -> bool:
    return edge.valid_from_ns <= source_ns <= edge.valid_to_ns


def _why_none(instant: Instant, domain: ClockDomain, edges: tuple[Alignment, ...]) -> Gap[ClockGap]:
    ends = {instant.domain, domain}
    if any({edge.source, edge.target} == ends for edge in edges):
        return Gap(ClockGap.OUTSIDE_VALIDITY, f"{instant.ns} ns of {instant.domain.name}")
    return Gap(ClockGap.NO_ALIGNMENT, f"{instant.domain.name} and {domain.name}")


def _host_and_boot(of: ProcessIdentity) -> str:
    match of.boot_id:
        case Gap():
            ticks = "unknown" if isinstance(of.start_ticks, Gap) else str(of.start_ticks)
            return f"{of.host}/unshared-{of.pid}-{ticks}"
        case str():
            return f"{of.host}/{of.boot_id}"
        case _:
            assert_never(of.boot_id)
