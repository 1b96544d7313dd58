"""A rank whose loop is somebody else's: it dials in, obeys at boundaries, trains on without control (SE-1a)."""

import atexit
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from paritrace.errors import ParitraceError
from paritrace.evidence.gaps import Gap
from paritrace.process.identity import own_identity
from paritrace.runs.launch import Launch, launch_of
from paritrace.session.commands import Body
from paritrace.session.engines.layout import stacks_path
from paritrace.session.engines.lines import SocketLine
from paritrace.session.engines.rendezvous import Rendezvous, dialled, joined_as, rendezvous_in
from paritrace.session.engines.seam import RankSpec
from paritrace.session.engines.stacks import dump_on_signal
from paritrace.session.messages import RoundName
from paritrace.session.rank import capturing, configuring
from paritrace.session.rank.between import BetweenSteps
from paritrace.session.rank.closing import Closing
from paritrace.session.rank.context import Identity, RankContext
from paritrace.session.rank.control import Control, Words, WorkView
from paritrace.session.rank.place import Declined, Place
from paritrace.session.rank.serving import drain
from paritrace.session.rank.stepping import NEVER, Gate
from paritrace.session.rank.telling import view_of
from paritrace.session.rank.working import Working
from paritrace.session.rank_events import Broke, Built, Do, Done, Finished
from paritrace.session.workload import RUN_BOUNDARY, ConfigField, Context, Plan

LAST_WORD_SECONDS = 1.0  # for the word that the loop is over, or has failed; the process ends after it anyway


def attached(directory: Path, /) -> "AttachedLoop | None":
    """Return this process as a rank of the session in `directory`; None, and why on stderr, where it is none."""
    try:
        launch = launch_of(os.environ, process=own_identity())
        found = rendezvous_in(directory)
        dump_on_signal(stacks_path(str(directory), found.generation, launch.rank))
        return AttachedLoop(dialled(found.host, found.port), found, launch, directory)
    except (ParitraceError, OSError) as error:  # training is more than control of it
        _say(f"this process is not controlled: {error}")
        return None


Settable = tuple[dict[str, Any], Callable[[Mapping[str, Any]], None]]
"""Values of a loop that may change between two steps, and what changes them."""
CONFIGURABLE = ("config_fields", "plan_config")


class _Loop:
    """Stands where a workload of a session stands; its code is the script, and all it may have is a configuration."""

    __module__ = "__main__"

    def __init__(self, settable: Settable | None) -> None:
        self._values, self._configure = settable or ({}, _nothing)

    def config_fields(self) -> tuple[ConfigField, ...]:
        return tuple(ConfigField(name, value, impact=RUN_BOUNDARY) for name, value in self._values.items())

    def plan_config(self, _ctx: Context, changes: Mapping[str, Any]) -> Plan:
        return Plan(dict(changes), impact=dict.fromkeys(changes, RUN_BOUNDARY))

    def apply_config(self, _ctx: Context, plan: Plan) -> None:
        self._configure(plan.values)


def _nothing(_: Mapping[str, Any]) -> None:
    """A loop without a configuration is never asked to change it."""


class AttachedLoop:
    """One process's part in a session; the thread that iterates is the work thread."""

    def __init__(self, line: SocketLine, found: Rendezvous, launch: Launch, directory: Path) -> None:
        self._line = line
        self._words = Words(line)
        self._place = _place(found, launch, directory, moved=self._moved)
        self._working = Working(self._place, Closing())
        between = BetweenSteps(self._place)
        self._gate = Gate(tell=self._words.say, perform=self._perform, drain=drain, between=between)
        between.gate = self._gate
        self._controlled = True
        self._began = False
        self._left_early = ""  # why control ended before a loop began
        self._beyond = 0  # how much further the session counts than the present loop
        self._next = 0
        joined = joined_as(found, rank=launch.rank, world_size=launch.world_size)
        self._control = Control(line, joined, gate=self._gate, words=self._words, work=self)
        self._thread = self._control.start()
        self._excepthook = sys.excepthook
        sys.excepthook = self._failed
        atexit.register(self._over)
        os.register_at_fork(after_in_child=line.close)  # a data loader must not keep our line open

    def begins(self, start: int, settable: Settable | None) -> None:
        """A loop begins that calls its first step `start`. What may be set is what the process's first loop says."""
        self._beyond = max(0, self._next - start)
        if self._began:
            return
        self._began = True
        if self._left_early:  # turned away before there was a loop to speak of
            _say_ended(self._left_early)
        facts = {} if settable is None or not self._controlled else self._settable(settable)
        self._gate.stands_before(start)
        capabilities = tuple(sorted(self._place.capabilities))
        self._words.say(Built(start, 0, target=NEVER, capabilities=capabilities, facts=facts))

    def _settable(self, settable: Settable) -> Body:
        """Take in what may be set; where that is no configuration it is said, and nothing can be set."""
        place = self._place
        place.workload, place.capabilities = _Loop(settable), frozenset(CONFIGURABLE)
        try:
            configuring.first(place, None)
        except Declined as declined:
            place.capabilities = frozenset()
            _say(f"nothing of this loop can be set: {declined}")
            return {}
        return {"config": configuring.told(place)}

    def boundary(self, number: int) -> bool:
        """Wait until the loop's step `number` may begin; returns whether the session names it in a capture of its own.

        Never raises for a fault of the session: control is given up then.
        """
        step = number + self._beyond
        self._next = step + 1
        try:
            self._gate.boundary(step)
        except ParitraceError as error:
            self._words.say(Broke(step, (self._place.reason(error.code, error.message),)))
            self._gate.free()
        return self._place.armed is not None

    def _perform(self, item: Do) -> Done:
        """What the session has this thread do; closing it leaves the loop, its process and its group alone."""
        if item.name is RoundName.CLOSE:
            return Done(item.command_id, item.name, ok=True, facts={"step": self._place.step})
        return self._working.perform(item)

    def _moved(self) -> None:
        self._gate.moved()

    # Work, as the control thread sees it:

    def view(self) -> WorkView:
        return view_of(self._place)

    def prepare(self, item: Do) -> None:
        self._words.say(self._working.perform(item))

    def leave(self, why: str, *, cut: bool) -> None:
        del cut
        if self._controlled:
            self._controlled = False
            self._gate.free()
            self._line.close()
            if not self._began:
                self._left_early = why
            elif not sys.is_finalizing() and why != _OVER:
                _say_ended(why)

    # The end of the process:

    def _failed(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        """Nobody caught what the loop, or what came after it, raised: say so while there is time."""
        if self._controlled:
            self._words.say(Broke(self._place.step, self._place.reasons_of(error, code="step_raised")))
            self._thread.join(LAST_WORD_SECONDS)
        self._excepthook(kind, error, trace)

    def _over(self) -> None:
        capturing.end(self._place)
        if self._controlled:
            self._words.say(Finished(self._next))
            self._thread.join(LAST_WORD_SECONDS)


_OVER = "the loop is over"  # the machine's own word for it


def _place(found: Rendezvous, launch: Launch, directory: Path, *, moved: Callable[[], None]) -> Place:
    identity = Identity(
        rank=launch.rank,
        world_size=launch.world_size,
        local_rank=launch.rank if isinstance(launch.local_rank, Gap) else launch.local_rank,
        generation=found.generation,
        store="",
        scratch=directory,
    )
    spec = RankSpec(
        directory=str(directory),
        session_id=found.session_id,
        workload="",
        arguments={},
        world_size=found.world_size,
        generation=found.generation,
        job_id=found.job_id,
        token=found.token,
        autosave_every=0,
    )
    place = Place(RankContext(identity, config={}, config_revision=0, moved=moved), spec)
    place.workload = _Loop(None)
    return place


def _say_ended(why: str) -> None:
    _say(f"control of this training has ended, it goes on: {why}")


def _say(words: str) -> None:
    sys.stderr.write(f"paritrace: {words}\n")
    sys.stderr.flush()
