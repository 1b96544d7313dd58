"""A line within one process, and a coordinator played by hand at its far end."""

import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from msgspec import structs

from paritrace.session.barrier import Barrier
from paritrace.session.commands import Body, Kind
from paritrace.session.engines.seam import RankSpec
from paritrace.session.messages import (
    Answer,
    Autosaved,
    Beat,
    Ended,
    FromRank,
    Halt,
    Joined,
    Round,
    RoundName,
    Verdict,
    encoded,
    from_rank,
)
from paritrace.session.rank.serving import serve
from paritrace.session.rounds import brings_inputs

WAIT_SECONDS = 30.0  # for an answer: a loaded machine is slow, and nothing is waited for once it is there
Message = TypeVar("Message", Answer, Autosaved, Ended, Beat, Joined)


class NearLine:
    """The rank's end of a line. `heard` and `said` are the coordinator's side of it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._to_rank: deque[bytes] = deque()
        self._from_rank: list[FromRank] = []
        self._woken = False
        self._closed = False

    def send(self, data: bytes) -> None:
        with self._changed:
            if self._closed:
                raise BrokenPipeError("the line is closed")
            self._from_rank.append(from_rank(data))
            self._changed.notify_all()

    def receive(self, timeout_seconds: float) -> list[bytes] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._to_rank or self._woken or self._closed, timeout_seconds)
            self._woken = False
            found = list(self._to_rank)
            self._to_rank.clear()
            return None if self._closed and not found else found

    def wake(self) -> None:
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def say(self, message: Round | Halt) -> None:
        with self._changed:
            self._to_rank.append(encoded(message))
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def first(self, kind: type[Message], wanted: Callable[[Message], bool] | None = None, *, after: int = 0) -> Message:
        """Wait for the first message of a kind, of those after the first `after`, that is wanted."""
        deadline = time.monotonic() + WAIT_SECONDS
        with self._changed:
            while True:
                for message in self._from_rank[after:]:
                    if isinstance(message, kind) and (wanted is None or wanted(message)):
                        return message
                left = deadline - time.monotonic()
                assert left > 0, f"no such {kind.__name__} within {WAIT_SECONDS} s; the last: {self._from_rank[-3:]}"
                self._changed.wait(left)

    def heard(self) -> list[FromRank]:
        """All that was heard so far."""
        with self._changed:
            return list(self._from_rank)

    @property
    def num_heard(self) -> int:
        with self._changed:
            return len(self._from_rank)


class Played:
    """One rank of one, served on a thread, and its coordinator played by hand."""

    def __init__(self, directory: Path, workload: str, /, *, rank: int = 0, **changes: Any) -> None:
        self.rank = rank
        spec = RankSpec(
            directory=str(directory),
            session_id="session-1",
            workload=workload,
            arguments={},
            world_size=1,
            generation=1,
            job_id="job-1",
            token="secret",
            autosave_every=0,
        )
        self.spec = structs.replace(spec, **changes)
        self.line = NearLine()
        self.epoch = 0
        self.revision = self.spec.config_revision
        self.status: int | None = None
        self._number = 0
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        self.status = serve(self.line, self.spec, rank=self.rank, local_rank=self.rank)

    def built(self) -> Ended:
        return self.line.first(Ended)

    def round(
        self,
        kind: Kind,
        name: RoundName,
        body: Body | None = None,
        *,
        step: int | None = None,
        number: int | None = None,
    ) -> Answer:
        """Write one round of the present command and wait for its answer."""
        bears = name is RoundName.VOTE
        epoch = (
            self.epoch + 1
            if name in {RoundName.PREPARE, RoundName.RESERVE, RoundName.PARK, RoundName.RELEASE}
            else self.epoch
        )
        if bears:
            self.epoch += 1
            epoch = self.epoch
        command_id = f"command-{self._number}"
        self.line.say(
            Round(
                generation=self.spec.generation,
                command_id=command_id,
                kind=kind,
                epoch=epoch,
                name=name,
                barrier=Barrier(epoch, kind) if bears else None,
                step=step,
                body=body or {},
            )
        )
        answer = self.line.first(Answer, lambda one: one.command_id == command_id and one.name is name)
        self.revision = answer.config_revision
        return answer

    def command(self, kind: Kind, body: Body | None = None, /, *, target: int | None = None) -> list[Answer]:
        """Vote, then act; abort where the vote is not a yes. Returns the answers."""
        self._number += 1
        answers: list[Answer] = []
        if kind is Kind.INPUTS or brings_inputs(kind, body or {}):
            answers.append(self.round(kind, RoundName.PREPARE, body))
            if answers[-1].verdict is not Verdict.YES:
                return [*answers, self.round(kind, RoundName.RELEASE)]
        answers.append(self.round(kind, RoundName.VOTE, body))
        if answers[-1].verdict is not Verdict.YES:
            return [*answers, self.round(kind, RoundName.ABORT)]
        answers.append(self.round(kind, RoundName.ACT, body, step=target))
        if kind is Kind.INPUTS and answers[-1].verdict is Verdict.YES:
            answers.append(self.round(kind, RoundName.PUBLISH, body))
        return answers

    def begin_run(self, steps: int, /, *, at: int, **body: Any) -> list[Answer]:
        return self.command(Kind.RUN, {"steps": steps, **body}, target=at + steps)

    def run(self, steps: int, /, *, at: int, **body: Any) -> Ended:
        """Run to the end; the caller says from where."""
        heard = self.line.num_heard
        answers = self.begin_run(steps, at=at, **body)
        assert answers[-1].verdict is Verdict.YES, answers
        return self.line.first(Ended, after=heard)

    def park(self, kind: Kind) -> int:
        """Begin a live command: reserve, then park at what this only rank reserved."""
        self._number += 1
        reserved = self.round(kind, RoundName.RESERVE).step
        assert self.round(kind, RoundName.PARK, step=reserved).verdict is Verdict.YES
        return reserved

    def close(self) -> int:
        self._number += 1
        answer = self.round(Kind.CLOSE, RoundName.CLOSE)
        assert answer.verdict is Verdict.YES, answer
        return self.joined()

    def joined(self) -> int:
        self._thread.join(WAIT_SECONDS)
        assert not self._thread.is_alive()
        assert self.status is not None
        return self.status
