"""What a session says of itself: an immutable record, swapped by reference at most 10 times a second (SE-14, SE-36)."""

from typing import Any

from msgspec import Struct, field

from paritrace.session.commands import Body, Reason
from paritrace.session.engines.seam import TurnedAway
from paritrace.session.states import RankState

FORMAT = "paritrace-session-status"
VERSION = "1.1"


class RankView(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The last that one rank said, and how old that is, measured when it is read."""

    rank: int
    state: RankState | None  # None: it has said nothing yet
    epoch: int
    step: int
    pid: int | None = None
    heartbeat_age_seconds: float | None = None
    progress_age_seconds: float | None = None
    findings: tuple[str, ...] = ()  # unresponsive, stalled, with their evidence
    preview: Body = field(default_factory=dict[str, Any])  # of a rank that offers previews: as that of the session


class CheckpointState(Struct, frozen=True, forbid_unknown_fields=True):
    """The file that the live state is byte-identical to; gone with the next step (SE-28)."""

    path: str
    digest: str
    step: int


class Status(Struct, frozen=True, forbid_unknown_fields=True):
    """A session at one moment. `state` is a fact of the job: that all ranks agree on, or did last (SE-11)."""

    session_id: str
    generation: int
    engine: str
    world_size: int
    state: RankState
    agreed: bool  # whether all ranks report this state and epoch now
    epoch: int
    config_revision: int
    ranks: tuple[RankView, ...]
    format: str = FORMAT
    version: str = VERSION
    phase: str = ""
    step: int | None = None
    target: int | None = None  # of this run; a session has no natural end
    pending: int = 0
    laggard: int | None = None
    coordinator_operation: str | None = None
    command: Body | None = None  # the one under way: id, kind, round
    queued: int = 0
    progress: Body = field(default_factory=dict[str, Any])
    metrics: Body = field(default_factory=dict[str, Any])
    metrics_step: int | None = None
    warnings: tuple[str, ...] = ()
    error: tuple[Reason, ...] = ()
    root_cause: str | None = None  # `rank N`, or `undetermined`
    failure_report: str | None = None
    checkpoint_state: CheckpointState | None = None
    inputs: Body = field(default_factory=dict[str, Any])  # digest, generation
    preview: Body = field(
        default_factory=dict[str, Any]
    )  # of rank 0: generation, step, path, next_step, disabled_reason
    capabilities: tuple[str, ...] = ()
    control: str = "full"  # attach: `disabled: WHY` once control was given up
    turned_away: tuple[TurnedAway, ...] = ()  # attach: processes that wanted to join and may not, the last one last
