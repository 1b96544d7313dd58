"""Which incarnation of a run a process belongs to: each restart of a launcher opens one (CA-3).

A launcher's restart count is that of one agent. With several nodes each torchrun agent counts only the failures of its
own workers, and a change of the number of nodes is counted by none, so the counts of one incarnation differ. What does
tell: an agent starts each of its local ranks once in an incarnation.
"""

from collections.abc import Callable, Sequence

from paritrace.errors import EvidenceError
from paritrace.runs.envelope import Envelope, Session
from paritrace.runs.launch import Launch

AGENT = "agent"  # in a session's metadata: the launcher's process on this node, by a name that it has given itself
RESTART = "restart"  # its count of restarts, where an agent is known


def agent_metadata(launch: Launch) -> dict[str, str]:
    """Return what a session keeps of its agent, for the rule below."""
    return {AGENT: launch.agent, RESTART: str(launch.restart)} if launch.agent else {}


def incarnation_of(envelope: Envelope, launch: Launch, *, alive: Callable[[Session], bool]) -> int:
    """Return the incarnation that a process of this launch joins or opens.

    Args:
        alive: whether a session's process provably lives: a restart begins when the processes before it have ended.

    Raises:
        EvidenceError: Refused, code `stale_restart`: its agent has started later ones.
    """
    latest = max((row.incarnation for row in envelope.sessions), default=-1)
    if latest < 0:
        return launch.restart
    if not launch.agent:
        _require_current(envelope, launch, latest)
        return launch.restart
    mine = [row for row in envelope.sessions if row.metadata.get(AGENT) == launch.agent]
    _require_current(envelope, launch, max((_restart(row) for row in mine), default=0))
    members = [row for row in envelope.sessions if row.incarnation == latest]
    before = [row for row in members if row in mine and _was_before(row, launch)]
    if before:
        again = any(alive(row) for row in before) or _is_same_start_of(before, launch)
        return latest if again else max(latest + 1, launch.restart)
    return max(latest + 1, launch.restart) if _opens(members, launch, known=bool(mine)) else latest


def _was_before(row: Session, launch: Launch) -> bool:
    """Whether a session of the same agent is that of an earlier start of its ranks."""
    return row.local_rank == launch.local_rank or _restart(row) < launch.restart


def _opens(members: Sequence[Session], launch: Launch, *, known: bool) -> bool:
    """Whether this process cannot be one of the latest incarnation's, of which it is the first of its agent."""
    if not known and not launch.several_agents:
        return False  # one agent, and another than the run's: it is refused where its session exists
    taken = any(row.rank == launch.rank for row in members)
    return taken or any(row.world_size != launch.world_size for row in members)


def _is_same_start_of(mine: Sequence[Session], launch: Launch) -> bool:
    """One agent without others counts every restart: the same count again is a second capture, not a restart."""
    return not launch.several_agents and all(
        _restart(row) == launch.restart and row.world_size == launch.world_size for row in mine
    )


def _restart(row: Session) -> int:
    text = row.metadata.get(RESTART, "")
    return int(text) if text.isdecimal() and len(text) < 10 else 0


def _require_current(envelope: Envelope, launch: Launch, latest: int) -> None:
    if launch.restart < latest:
        raise EvidenceError(
            f"run {envelope.run_id} is in restart {latest} already; this process belongs to restart {launch.restart}",
            code="stale_restart",
            fix="end this process: its launcher has started later ones",
        )
