"""The ranks of one generation after the other: started, told to end, killed within the bounds, looked at (SE-21)."""

import secrets
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from paritrace.clock import Clock
from paritrace.files import Files
from paritrace.session.bounds import bounds_with
from paritrace.session.commands import Body
from paritrace.session.coordinator.opening_request import Opening
from paritrace.session.directory import GROUP
from paritrace.session.engines.seam import Engine, ExitEvidence, FromEngine, RankSpec, TurnedAway
from paritrace.session.failure import FailureReport
from paritrace.session.messages import Joined
from paritrace.session.stopping import Failing, Stopped, stop_failed

MakeEngine = Callable[[], Engine]


class Started(Struct, frozen=True):
    """What a generation is started with, beside what the session's opening says."""

    generation: int
    config: Body
    config_revision: int
    start_from: str | None
    inputs_digest: str | None
    inputs_reference: Body | None = None
    tolerate_unknown: bool = False


class Generations:
    """One engine for each generation. All is called from the main thread, but for `wake`."""

    def __init__(self, opening: Opening, *, session_id: str, token: str, make: MakeEngine) -> None:
        self._opening = opening
        self._session_id = session_id
        self._token = token
        self._make = make
        self._swapping = threading.Lock()
        self._engine = make()
        self._spec: RankSpec | None = None
        self._ended = False

    @property
    def stops_ranks(self) -> bool:
        """Whether a fail-stop ends the ranks; under `attach` it disables control only."""
        return self._engine.stops_ranks

    @property
    def turned_away(self) -> tuple[TurnedAway, ...]:
        """Who wanted to be a rank of this generation and may not."""
        return self._engine.turned_away

    @property
    def numbers(self) -> range:
        """The ranks."""
        return range(self._opening.ranks)

    def start(self, started: Started) -> None:
        """Let go of the last generation and start the next. Raises what the engine's `start` does."""
        if self._spec is not None:
            with self._swapping:
                self._engine.close()
                self._engine = self._make()
        self._spec = RankSpec(
            directory=self._opening.directory,
            session_id=self._session_id,
            workload=self._opening.workload,
            arguments=self._opening.arguments,
            world_size=self._opening.ranks,
            generation=started.generation,
            job_id=f"{self._session_id}.{started.generation}.{secrets.token_hex(4)}",
            token=self._token,
            first_config=started.config,
            config_revision=started.config_revision,
            start_from=started.start_from,
            inputs_digest=started.inputs_digest,
            autosave_every=self._opening.autosave_every,
            tolerate_unknown=started.tolerate_unknown,
            inputs_reference=started.inputs_reference,
            group_timeout_seconds=bounds_with(self._opening.bounds)["process_group"],
        )
        self._engine.start(self._spec)

    def send(self, rank: int, data: bytes) -> bool:
        """Write to a rank; that its line is closed is brought by `receive`."""
        return self._spec is not None and self._engine.send(rank, data)

    def receive(self, seconds: float) -> list[FromEngine]:
        """Return what has come, waiting at most so long for the first."""
        return self._engine.receive(seconds)

    def wake(self) -> None:
        """From any thread: end a `receive` that waits."""
        with self._swapping:
            if not self._ended:
                self._engine.wake()

    def evidence(self, rank: int) -> ExitEvidence | None:
        """Return what is known of a rank's process now; None where none was ever started."""
        return None if self._spec is None else self._engine.exit_evidence(rank)

    def living(self) -> tuple[int, ...]:
        """Return the ranks whose end is not known."""
        known = ((rank, self.evidence(rank)) for rank in self.numbers)
        return tuple(rank for rank, one in known if one is not None and one.wait is None)

    def stop_failed(
        self, failing: Failing, *, files: Files, reported: Callable[[FailureReport], None], clock: Clock
    ) -> Stopped | None:
        """Report a failure and end the ranks (`session.stopping`); None where none was ever started."""
        if self._spec is None:
            return None
        return stop_failed(self._engine, failing, files=files, reported=reported, clock=clock)

    def kill(self) -> None:
        """End what has not ended, where it is ours."""
        if self.stops_ranks:
            for rank in self.living():
                self._engine.kill(rank)

    def kill_one(self, rank: int) -> None:
        """End a rank that breaks the protocol, where it is ours."""
        if self.stops_ranks:
            self._engine.kill(rank)

    def is_of(self, joined: Joined) -> bool:
        """Whether a rank that joins belongs to this attempt and no other (F-18)."""
        spec = self._spec
        return spec is not None and (joined.job_id, joined.world_size) == (spec.job_id, spec.world_size)

    def end(self) -> None:
        """Let go of everything; the folder of the process group goes, too."""
        with self._swapping:
            self._ended = True
            self._engine.close()
        shutil.rmtree(Path(self._opening.directory, GROUP), ignore_errors=True)
