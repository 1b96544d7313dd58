"""What a rank holds between commands, and what a function of `working` is given and returns (SE-7)."""

import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec import json as msgspec_json

from paritrace.capture.session import Capture
from paritrace.capture.settings import CaptureSettings
from paritrace.errors import ParitraceError
from paritrace.evidence.digests import sha256_hex
from paritrace.files import LOCAL, Files
from paritrace.session.commands import Body, Reason, bounded
from paritrace.session.configuration import Given, Resolved
from paritrace.session.engines.seam import RankSpec
from paritrace.session.rank.context import RankContext
from paritrace.session.rank.plain import plain_text
from paritrace.session.rank_events import Do, RankEvent
from paritrace.session.schedule import NOTHING, Schedule
from paritrace.session.workload import ConfigField, InputSet, Plan, Refusal, Unchanged

_ENCODER = msgspec_json.Encoder(order="sorted")


class Declined(Exception):  # noqa: N818  no error: an answer
    """A round is refused, for all of these reasons; nothing resident has changed."""

    def __init__(self, *reasons: Reason) -> None:
        super().__init__("; ".join(reason.words for reason in reasons))
        self.reasons = reasons


class Outcome(Struct, frozen=True):
    """What a round came to on this rank; fields as in `Done`."""

    digest: str | None = None
    config_revision: int | None = None
    step: int | None = None
    notes: tuple[str, ...] = ()
    facts: Body = field(default_factory=dict[str, Any])


class LiveAs(Struct, frozen=True):
    """The checkpoint that the live state is byte-identical to, as long as no step was taken since (SE-28)."""

    path: str  # within the session's directory
    step: int
    steps_taken: int  # by this rank at that moment
    digest: str = ""  # of its manifest; "" until that is written

    @property
    def facts(self) -> Body:
        """What status, previews and captures carry."""
        return {"path": self.path, "step": self.step, **({"digest": self.digest} if self.digest else {})}


class InputsHeld(Struct, frozen=True):
    """The identity of the present inputs; None where the workload does not tell it (SE-23)."""

    generation: int = 0
    known: InputSet | None = None

    @property
    def facts(self) -> Body:
        """What status, journal, checkpoints and captures name."""
        told: Body = {"gap": "not_told"} if self.known is None else {"digest": self.known.digest}
        return {**told, "generation": self.generation}


class RunHeld(Struct, frozen=True):
    """The run under way, or one that is voted for. `first_step` is known once it has begun."""

    steps: int
    first_step: int | None = None
    schedule: Schedule = NOTHING
    autosave: bool = True
    preview_every: int = 0  # steps; 0: none
    preview_options: Body = field(default_factory=dict[str, Any])


class Armed(Struct, frozen=True):
    """A capture of the next steps: asked for, and once its first step has begun, under way."""

    name: str
    settings: CaptureSettings  # but for its steps, known once it begins
    steps: int
    first_step: int | None = None
    capture: Capture | None = None


class Place:
    """What the functions of a rank share. Everything is written on the work thread.

    `workload` is of the user's class: its methods are called by name, those it may lack only where `can` says so.
    """

    def __init__(self, context: RankContext, spec: RankSpec, *, files: Files = LOCAL) -> None:
        self.workload: Any = None  # until it is made
        self.context = context
        self.spec = spec
        self.files = files
        self.capabilities = frozenset[str]()  # until the workload's module is imported
        self.directory = Path(spec.directory)
        self.retained: dict[str, Any] = {}  # by command: what was prepared, planned or inspected
        self.declared: tuple[ConfigField, ...] | None = None  # what the workload declares, from the start on
        self.preparing: set[str] = set()  # commands whose inputs are prepared now, on a thread of its own
        self.abandoned: set[str] = set()  # commands aborted while their preparation was under way
        self.given = Given()
        self.resolved: Resolved | None = None
        self.before: Before | None = None
        self.inputs = InputsHeld()
        self.prepared_from: dict[str, Body] = {}  # by digest: the reference that a candidate was prepared from
        self.live_as: LiveAs | None = None
        self.autosave_tried: int | None = None  # steps taken at the last try, whatever became of it
        self.run: RunHeld | None = None
        self.voted_run: RunHeld | None = None
        self.epoch = 0  # that of the run under way or the last one
        self.step = 0  # steps below it are done
        self.steps_taken = 0
        self.say: Callable[[RankEvent], None] = _nobody  # to the control thread
        self.owed: list[Callable[[], None]] = []  # done after a command is told, while nobody waits
        self.armed: Armed | None = None
        self.offers_preview = False  # whether this rank makes previews; known once it is built
        self.preview: Body = {}
        self.void_preview = ""  # the path of one whose command was refused while it was being written
        self.rendering = False  # a preview is being written beside the steps
        self.previews_disabled: str | None = None  # why, for this run (SE-10)

    @property
    def rank(self) -> int:
        return self.context.rank

    def can(self, capability: str) -> bool:
        """Whether the workload has the methods of a capability."""
        return capability in self.capabilities

    def reason(self, code: str, words: str) -> Reason:
        """One reason of this rank."""
        return Reason(self.rank, code, plain_text(words))

    def reasons_of(self, error: BaseException, *, code: str = "workload_raised") -> tuple[Reason, ...]:
        """What an exception says: each of its reasons, or its type, its words and where it was raised."""
        match error:
            case Declined():
                return error.reasons
            case Unchanged():
                return tuple(self.reason("declined_by_workload", words) for words in error.reasons)
            case ParitraceError():
                return (self.reason(error.code, error.message),)
            case _:
                frames = traceback.extract_tb(error.__traceback__)
                where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
                return (self.reason(code, f"{type(error).__name__}: {plain_text(error)}{where}"),)

    def refusal(self, refusal: Refusal, code: str) -> Declined:
        """Every reason a method of the workload gave, bounded (SE-22)."""
        return Declined(*(self.reason(code, words) for words in bounded(refusal.reasons)))

    @property
    def state_digest(self) -> str | None:
        """The digest of the resident state; None where the workload has none to give."""
        return str(self.workload.state_digest(self.context)) if self.can("state_digest") else None

    @property
    def is_live_as(self) -> LiveAs | None:
        """The checkpoint that the live state is identical to now."""
        live = self.live_as
        return live if live is not None and live.steps_taken == self.steps_taken else None

    def changed(self) -> None:
        """The live state is no longer that of a checkpoint, on any rank; the next pause saves it."""
        self.live_as, self.autosave_tried = None, None

    @property
    def stamp(self) -> Body:
        """(session, epoch, revision, step), and what else captures, checkpoints and previews carry (SE-15, SE-28)."""
        live = self.is_live_as
        return {
            "session": self.spec.session_id,
            "generation": self.spec.generation,
            "command_epoch": self.epoch,
            "config_revision": self.context.config_revision,
            "step": self.step,
            "inputs": self.inputs.facts,
            **({} if live is None else {"checkpoint": live.facts}),
        }


def _nobody(_: RankEvent) -> None:
    """A place without a control thread tells nobody."""


class Before(Struct, frozen=True):
    """The values that a configure replaced, kept until the first step has been taken under the new ones (SE-33)."""

    given: Given
    resolved: Resolved | None
    config: Mapping[str, Any]
    config_revision: int
    undo: Plan | None
    steps_taken: int


class Task:
    """One round of a command, in the hands of the function that does it."""

    def __init__(self, place: Place, item: Do) -> None:
        self.place = place
        self.command_id = item.command_id
        self.kind = item.kind
        self.body = item.body
        self._num_releases = 0

    def releases(self) -> None:
        """Something resident changes in the next call: from here on a fault is fatal (SE-7)."""
        self._num_releases += 1

    def released(self, error: BaseException, /) -> bool:
        """Whether something resident may have changed when this was raised: the first call that changes anything may
        say that it has not."""
        if isinstance(error, Declined):
            return False
        return self._num_releases > (1 if isinstance(error, Unchanged) else 0)

    def only(self, *keys: str) -> None:
        """Refuse a body with other keys than these. Raises Declined."""
        unknown = sorted(set(self.body) - set(keys))
        if unknown:
            raise Declined(*(self.place.reason("unknown_field", f"{key}: no part of this command") for key in unknown))

    def kept(self) -> Any:
        """What an earlier round of this command has kept. Raises Declined where there is nothing."""
        try:
            return self.place.retained[self.command_id]
        except KeyError:
            raise Declined(self.place.reason("nothing_prepared", "no earlier round has prepared this")) from None


def digest_of(value: object, /) -> str:
    """Return the SHA-256 of a value of JSON, whatever the order of its keys."""
    return sha256_hex(_ENCODER.encode(value))
