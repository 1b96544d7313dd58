"""Where a session's time 0 lies in a trace: by the wall clock of its own host and boot, never across hosts (EV-4)."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from paritrace.evidence.clocks import ClockDomain, wall_domain
from paritrace.runs.envelope import Role
from paritrace.runs.reading import Run
from paritrace.runs.views import SessionView


class Zero(Struct, frozen=True):
    """`offsets`: session id -> ns from 0 of the trace to the session's start. `domains`: its clock, in words.

    `unix_ns`: the wall time of 0, None where sessions have several clocks and 0 is each clock's own.
    """

    offsets: dict[str, int]
    domains: dict[str, str]
    unix_ns: int | None


def calling(run: Run, /) -> tuple[SessionView, ...]:
    """Returns the sessions that may have calls: one that only appended inference evidence has none."""
    return tuple(view for view in run.sessions if view.row.role is not Role.INFERENCE_CAPTURE)


def zero_of(run: Run, /) -> Zero:
    """Returns where the sessions of a run lie: sessions of one clock as that clock says, each clock from its own 0."""
    first: dict[ClockDomain, int] = {}
    for view in calling(run):
        domain = wall_domain(view.row.process)
        first[domain] = min(first.get(domain, view.row.started_unix_ns), view.row.started_unix_ns)
    starts = {view.session_id: view.row.started_unix_ns - first[wall_domain(view.row.process)] for view in calling(run)}
    domains = {view.session_id: wall_domain(view.row.process).name for view in calling(run)}
    return Zero(offsets=starts, domains=domains, unix_ns=min(first.values()) if len(first) == 1 else None)


def moved(zero: Zero, by_ns: int, /) -> Zero:
    """Returns the same sessions, all of them later by so much."""
    unix_ns = None if zero.unix_ns is None else zero.unix_ns - by_ns
    return replace(zero, offsets={name: start + by_ns for name, start in zero.offsets.items()}, unix_ns=unix_ns)


def labels_of(sessions: Sequence[SessionView], zero: Zero, /) -> tuple[str, ...]:
    """Returns what stands beside a rank's name: the process as its host knew it, and whose clock it is told by."""
    labels: list[str] = []
    for view in sessions:
        process = view.row.process
        labels.append(f"pid {process.pid} on {process.host}")
    if zero.unix_ns is None:
        labels.append("several clocks: each from its own start")
    return tuple(labels)
