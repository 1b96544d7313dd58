"""The seam between the protocol and what starts ranks: the protocol never knows the engine (SE-16)."""

from collections.abc import Collection, Mapping
from typing import Any, Protocol

from msgspec import Struct, field

from paritrace.process.stop_facts import Exited, Signalled


class RankSpec(Struct, frozen=True):
    """One generation of ranks to be started. Identity is passed as values (SE-2)."""

    directory: str  # the session's
    session_id: str  # what captures and checkpoints are stamped with (SE-15)
    workload: str  # module:Class
    arguments: dict[str, Any]  # JSON, for its constructor
    world_size: int
    generation: int
    job_id: str
    token: str
    first_config: dict[str, Any] = field(default_factory=dict[str, Any])
    config_revision: int = 0  # the one that `first_config` is
    start_from: str | None = None  # a checkpoint's name (SE-37)
    inputs_digest: str | None = None  # those that were present before: they are prepared again (SE-9)
    environment: dict[str, str] = field(default_factory=dict[str, str])
    autosave_every: int = 1000  # steps; 0: never by cadence (SE-37)
    tolerate_unknown: bool = False  # unknown names of `first_config` are dropped and told (SE-25)
    inputs_reference: dict[str, Any] | None = None  # of new inputs, in place of those before (SE-33)
    group_timeout_seconds: float = 3600.0  # the bound `process_group`


class FromEngine(Struct, frozen=True):
    """What an engine brings: bytes of a rank, or, with None, that its line is closed or its process has ended."""

    rank: int
    data: bytes | None


class ExitEvidence(Struct, frozen=True):
    """What is known of a rank's process. `wait` None: alive, not ours to wait for, or not reaped in time."""

    rank: int
    pid: int | None
    wait: Exited | Signalled | None
    signals_by_us: tuple[int, ...] = ()
    not_reaped: bool = False
    launcher_owned: bool = False  # attach: whoever started it ends it
    log: str | None = None  # name of its log within the session's directory
    cgroup_oom_kills: int | None = None  # by how much the counter of its group rose; None where not known
    line_closed: bool = False  # where there is no wait status, this is all that tells of an end
    words: str = ""  # what the engine itself says of the end: Ray's cause of an actor's death


class TurnedAway(Struct, frozen=True, forbid_unknown_fields=True):
    """A process that wanted to be a rank and may not. `rank`: which it said it was, None where it said nothing."""

    why: str
    address: str  # of the machine it dialled in from
    rank: int | None
    last_unix_ns: int
    times: int = 1  # how often the same one came for the same reason


class Engine(Protocol):
    """One generation of ranks. All methods are called from the coordinator's main thread, but for `wake`."""

    @property
    def stops_ranks(self) -> bool:
        """Whether a fail-stop ends the ranks (local, Ray); under attach it disables control only."""
        ...

    @property
    def turned_away(self) -> tuple[TurnedAway, ...]:
        """Who dialled in and was turned away; nobody where ranks are started by the engine itself."""
        return ()

    def start(self, spec: RankSpec) -> None:
        """Start the ranks, or begin to wait for those that dial in."""
        ...

    def send(self, rank: int, data: bytes) -> bool:
        """Write to a rank; never blocks for longer than SEND_SECONDS. False where its line is closed or stuck."""
        ...

    def receive(self, timeout_seconds: float) -> list[FromEngine]:
        """Return what has come, waiting at most so long for the first."""
        ...

    def wake(self) -> None:
        """From any thread: end a `receive` that waits."""
        ...

    def dump_stacks(self, ranks: Collection[int]) -> dict[int, str]:
        """Ask living ranks, all at once, for the stacks of all their threads, waiting a second at most for all of them.

        A rank that gave none (it is stopped, has ended, or runs on another host) is not in what is returned.
        """
        ...

    def terminate(self, rank: int) -> None:
        """SIGTERM, or what stands for it."""
        ...

    def kill(self, rank: int) -> None:
        """SIGKILL, or what stands for it."""
        ...

    def exit_evidence(self, rank: int) -> ExitEvidence:
        """Return what is known now, without waiting."""
        ...

    def close(self) -> None:
        """Let go of lines, listeners and handles; ranks that still run are killed where they are ours."""
        ...


class RankLine(Protocol):
    """The rank's end of its line; used by the control thread, `send` by it alone."""

    def send(self, data: bytes) -> None:
        """Write. Raises OSError where the line is closed."""
        ...

    def receive(self, timeout_seconds: float) -> list[bytes] | None:
        """Return what has come, waiting at most so long for the first; None where the line is closed."""
        ...

    def wake(self) -> None:
        """From any thread: end a `receive` that waits."""
        ...


Environment = Mapping[str, str]
