"""A rank from its first word to its last: the body of its process (SE-2, SE-18, SE-34)."""

import os
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from paritrace.clock import SYSTEM, Clock
from paritrace.evidence.gaps import Gap
from paritrace.files import LOCAL, Files
from paritrace.process.identity import own_identity
from paritrace.session.directory import GROUP
from paritrace.session.engines.seam import RankLine, RankSpec
from paritrace.session.messages import Joined
from paritrace.session.rank.between import BetweenSteps
from paritrace.session.rank.closing import Closing
from paritrace.session.rank.context import Identity, RankContext
from paritrace.session.rank.control import Control, Words, WorkView
from paritrace.session.rank.driving import drive
from paritrace.session.rank.making import capabilities_of, class_of, half_there
from paritrace.session.rank.place import Place
from paritrace.session.rank.plain import plain_text, require_plain
from paritrace.session.rank.starting import start
from paritrace.session.rank.stepping import Gate, Leaving
from paritrace.session.rank.telling import view_of
from paritrace.session.rank.working import Working
from paritrace.session.rank_events import Built, Do

CLOSED = 0
ENDED_OTHERWISE = 1  # an error, a fail-stop, or the coordinator is gone
CUT_SECONDS = 0.8  # between the coordinator's end and ours: all ranks are gone within a second of it (SE-18)


def serve(
    line: RankLine, spec: RankSpec, *, rank: int, local_rank: int, files: Files = LOCAL, clock: Clock = SYSTEM
) -> int:
    """Be one rank until it leaves; the thread that calls this is the work thread.

    Args:
        line: This rank's end of its line to the coordinator.
        spec: The generation that it belongs to.
        rank, local_rank: Who it is among the ranks, and on its machine.

    Returns:
        The exit status for the process: 0 where it was closed, 1 where it ended otherwise; why is on stderr.
    """
    serving = _Serving(line, spec, _identity(spec, rank=rank, local_rank=local_rank, files=files))
    control = Control(line, _joined(spec, rank=rank), gate=serving.gate, words=serving.words, work=serving, clock=clock)
    control.start()
    with _signals():
        return serving.work(control)


class _Serving:
    """The work thread's side: everything it shares with the control thread, and how it leaves."""

    def __init__(self, line: RankLine, spec: RankSpec, identity: Identity) -> None:
        self.words = Words(line)
        context = RankContext(
            identity, config=spec.first_config, config_revision=spec.config_revision, moved=self._moved
        )
        self._place = Place(context, spec)
        self._place.say = self.words.say
        self._closing = Closing()
        self._working = Working(self._place, self._closing)
        between = BetweenSteps(self._place)
        self.gate = Gate(tell=self.words.say, perform=self._working.perform, drain=drain, between=between)
        between.gate = self.gate
        self._work_thread = threading.get_ident()
        self._last_resort: threading.Timer | None = None

    def work(self, control: Control) -> int:
        """Make the workload resident and take steps; close it in every path, and return the exit status."""
        try:
            self._make(control)
            drive(self.gate, self._place)
        except Leaving as leaving:
            why = str(leaving)
        status = self._closed(why)
        if self._last_resort is not None:
            self._last_resort.cancel()
        return status

    def _make(self, control: Control) -> None:
        """Import, make and build the workload; the rank has joined by then, since an import alone may take minutes."""
        place = self._place
        try:
            place.context.enter("importing")
            found = class_of(place.spec.workload)
            place.capabilities = frozenset(capabilities_of(found))
            control.beat_soon()
            for words in half_there(found):
                place.context.warn(words)
            place.workload = found(**place.spec.arguments)
            facts = start(place)
            require_plain(facts, dict)
        except Leaving:
            raise
        except BaseException as error:  # noqa: BLE001  the workload's own code: whatever it raises is told
            self.gate.broke(place.step, place.reasons_of(error, code="start_failed"))
        self.gate.stands_before(place.step)
        capabilities = tuple(sorted(place.capabilities))
        self.words.say(Built(place.step, place.context.config_revision, capabilities=capabilities, facts=facts))

    def _closed(self, why: str) -> int:
        try:
            self._closing(self._place)
        except BaseException as error:  # noqa: BLE001  the workload's own code; the process ends now
            why = f"{why}; close raised {type(error).__name__}: {plain_text(error)}"
        if self._closing.by_command:
            return CLOSED
        sys.stderr.write(f"paritrace: rank {self._place.rank} leaves: {why}\n")
        return ENDED_OTHERWISE

    # Work, as the control thread sees it:

    def view(self) -> WorkView:
        return view_of(self._place)

    def prepare(self, item: Do) -> None:
        self._place.preparing.add(item.command_id)
        threading.Thread(
            target=lambda: self.words.say(self._working.perform(item)), name="paritrace-preparing", daemon=True
        ).start()

    def leave(self, why: str, *, cut: bool) -> None:
        if cut:  # nobody else ends this process, and its work may be stuck in native code
            self._last_resort = threading.Timer(CUT_SECONDS, os._exit, (ENDED_OTHERWISE,))
            self._last_resort.daemon = True
            self._last_resort.start()
        self.gate.leave(why)

    def _moved(self) -> None:
        """The workload has said something: a good moment to leave, where that is wanted."""
        self.gate.moved()
        if self.gate.leaving is not None and not self._closing.done and threading.get_ident() == self._work_thread:
            raise Leaving(self.gate.leaving)


def _identity(spec: RankSpec, *, rank: int, local_rank: int, files: Files) -> Identity:
    directory = Path(spec.directory).absolute()
    scratch = directory / "scratch" / f"generation-{spec.generation}" / f"rank-{rank}"
    files.mkdir(scratch)
    files.mkdir(directory / GROUP)
    return Identity(
        rank=rank,
        world_size=spec.world_size,
        local_rank=local_rank,
        generation=spec.generation,
        store=f"file://{directory / GROUP / f'generation-{spec.generation}'}",
        scratch=scratch,
        group_timeout_seconds=spec.group_timeout_seconds,
    )


def _joined(spec: RankSpec, *, rank: int) -> Joined:
    own = own_identity()
    return Joined(
        generation=spec.generation,
        rank=rank,
        world_size=spec.world_size,
        job_id=spec.job_id,
        token=spec.token,
        pid=own.pid,
        host=own.host,
        boot_id=None if isinstance(own.boot_id, Gap) else own.boot_id,
        start_ticks=None if isinstance(own.start_ticks, Gap) else own.start_ticks,
    )


def drain() -> None:
    """Wait for the accelerator where the workload uses torch; elsewhere there is no queue that we know of."""
    if "torch" in sys.modules:
        from paritrace.session.pytorch.draining import drain

        drain()


@contextmanager
def _signals() -> Generator[None, None, None]:
    """SIGTERM leaves, once; SIGINT is the coordinator's business. Where this is no main thread nothing is installed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _terminated), signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before[0])
        signal.signal(signal.SIGINT, before[1])


def _terminated(_number: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Leaving("SIGTERM")
