"""What a workload is told and what it may say: the `Context` of one rank (SE-2, SE-13, SE-26)."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from paritrace.clock import SYSTEM, Clock
from paritrace.session.commands import Body
from paritrace.session.rank.plain import plain_text

MAX_WARNINGS = 100  # a loop that warns at every step in new words must not fill the status


class Identity(Struct, frozen=True):
    """Who a rank is: values, never read from the environment."""

    rank: int
    world_size: int
    local_rank: int
    generation: int
    store: str
    scratch: Path
    group_timeout_seconds: float = 3600.0


class Said(Struct, frozen=True):
    """What the workload has said last; swapped as a whole, so that the heartbeat reads it without a lock (SE-14)."""

    phase: str = ""
    stage: str = ""
    done: int = 0
    total: int | None = None
    unit: str = ""
    since_ns: int = 0
    deadline_seconds: float | None = None
    warnings: tuple[str, ...] = ()


class Measured(Struct, frozen=True):
    """The metrics of a step as the workload returned them, with what that step was admitted under."""

    step: int | None = None
    epoch: int | None = None
    config_revision: int | None = None
    metrics: Mapping[str, object] = MappingProxyType({})


class RankContext:
    """The one `Context` of a rank. Written on its work thread; `said`, `config_revision` and `metrics` are read by all.

    `moved` is called whenever the work has moved.
    """

    def __init__(
        self,
        identity: Identity,
        *,
        config: Mapping[str, Any],
        config_revision: int,
        moved: Callable[[], None],
        clock: Clock = SYSTEM,
    ) -> None:
        self._identity = identity
        self._moved = moved
        self._clock = clock
        self.said = Said()
        self.metrics = Measured()
        self._config: Mapping[str, Any] = MappingProxyType(dict(config))
        self._scheduled: Mapping[str, Any] | None = None
        self.scheduled: Mapping[str, Any] = {}  # by the schedule alone; swapped as a whole
        self._revision = config_revision

    @property
    def rank(self) -> int:
        return self._identity.rank

    @property
    def world_size(self) -> int:
        return self._identity.world_size

    @property
    def local_rank(self) -> int:
        return self._identity.local_rank

    @property
    def generation(self) -> int:
        return self._identity.generation

    @property
    def store(self) -> str:
        return self._identity.store

    @property
    def group_timeout_seconds(self) -> float:
        return self._identity.group_timeout_seconds

    @property
    def scratch(self) -> Path:
        return self._identity.scratch

    @property
    def config(self) -> Mapping[str, Any]:
        """The configuration in force, with this step's values of the schedule in it during a run that has one."""
        return self._config if self._scheduled is None else self._scheduled

    @property
    def plain_config(self) -> Mapping[str, Any]:
        """The configuration in force, without any schedule."""
        return self._config

    @property
    def config_revision(self) -> int:
        return self._revision

    def progress(self, stage: str, done: int, total: int | None = None, unit: str = "") -> None:
        stage = plain_text(stage)
        since_ns = self.said.since_ns if stage == self.said.stage else self._clock.monotonic_ns()
        self._say(
            stage=stage,
            done=int(done),
            total=None if total is None else int(total),
            unit=plain_text(unit),
            since_ns=since_ns,
        )

    def deadline(self, seconds: float) -> None:
        self._say(deadline_seconds=float(seconds))

    def warn(self, words: str) -> None:
        words = plain_text(words)
        if words not in self.said.warnings and len(self.said.warnings) < MAX_WARNINGS:
            self._say(warnings=(*self.said.warnings, words))

    def enter(self, phase: str) -> None:
        """Begin a phase of the work: what was declared for the one before holds no longer."""
        self.said = Said(phase=phase, since_ns=self._clock.monotonic_ns(), warnings=self.said.warnings)
        self._moved()

    def configure(self, config: Mapping[str, Any], *, config_revision: int) -> None:
        """From now on this is the configuration in force."""
        self._config = MappingProxyType(dict(config))
        self._revision = config_revision

    def schedule(self, values: Mapping[str, Any] | None) -> None:
        """Values that hold for this step alone; None where nothing is scheduled."""
        self._scheduled = None if values is None else MappingProxyType({**self._config, **values})
        self.scheduled = {} if values is None else dict(values)

    def progress_body(self) -> Body:
        """What the heartbeat tells of the stage under way; elapsed is measured now (SE-14)."""
        said = self.said
        if not said.stage:
            return {}
        elapsed_seconds = (self._clock.monotonic_ns() - said.since_ns) / 1e9
        body: Body = {"stage": said.stage, "step": said.done, "elapsed_seconds": elapsed_seconds}
        if said.total is not None:
            body["total"] = said.total
        if said.unit:
            body["unit"] = said.unit
        return body

    def _say(self, **changes: Any) -> None:
        self.said = replace(self.said, **changes)
        self._moved()
