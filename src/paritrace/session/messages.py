"""What coordinator and ranks write to each other: one JSON document each (SE-4 to SE-6, SE-13).

A command is a row of *rounds*. In each round the coordinator writes one `Round` to every rank, and every rank answers
once, by one `Answer`. A rank that has a round twice answers as it did before. The first round of a command that bears a
barrier advances the epoch at its delivery, whatever the outcome; an abort that comes instead of it does so, too. What
goes wrong before the barrier is released, which leaves the epoch as it was.
"""

from enum import StrEnum
from typing import Any

from msgspec import Struct, field
from msgspec import json as msgspec_json

from paritrace.session.barrier import Barrier, Violation
from paritrace.session.commands import Body, Kind, Reason
from paritrace.session.states import RankState


class RoundName(StrEnum):
    """What a round asks of a rank. Those done by the control thread are answered at once, whatever the work does."""

    RESERVE = "reserve"  # control: the highest step at which it can park; it goes no further until told
    RELEASE = "release"  # control: before the barrier: reservation and preparation are void, steps go on as before
    PARK = "park"  # answered once parked at the agreed step, device queue drained
    PREPARE = "prepare"  # work, host side only, also between steps: inputs
    VOTE = "vote"  # bears the barrier. Work where the kind plans, inspects or resolves; pure: nothing resident changes
    ACT = "act"  # work: what was voted for is done; from the first resident change on a fault is fatal
    PUBLISH = "publish"  # work: installed inputs become the present ones
    ABORT = "abort"  # control: what was prepared or voted for is discarded
    RESUME = "resume"  # control: the rest of the run is admitted again under the present epoch and revision
    CLOSE = "close"  # work: `close`, then the process group, then the process ends


class Round(Struct, frozen=True, omit_defaults=True, tag="round", forbid_unknown_fields=True):
    """Coordinator to rank. `epoch`: that of the command; a rank holds it already, or one less before its barrier."""

    generation: int
    command_id: str
    kind: Kind
    epoch: int
    name: RoundName
    barrier: Barrier | None = None
    step: int | None = None  # PARK: the agreed step; RESUME, and ACT of a run: the run's target
    body: Body = field(default_factory=dict[str, Any])


class Verdict(StrEnum):
    """How a rank answers a round."""

    YES = "yes"
    REFUSED = "refused"  # nothing resident has changed on this rank
    FAILED = "failed"  # something has
    VIOLATION = "violation"  # another epoch than the protocol allows: fail-stop


class Answer(Struct, frozen=True, omit_defaults=True, tag="answer", forbid_unknown_fields=True):
    """Rank to coordinator. `digest`: what all ranks must agree on before the next round (a plan, a payload, inputs)."""

    generation: int
    command_id: str
    epoch: int
    name: RoundName
    rank: int
    verdict: Verdict
    state: RankState  # after what is answered: who reads the status once a command ended sees no state of before
    step: int  # the rank's own now; RESERVE: the highest step at which it can park
    config_revision: int
    digest: str | None = None
    reasons: tuple[Reason, ...] = ()
    violation: Violation | None = None
    notes: tuple[str, ...] = ()
    facts: Body = field(default_factory=dict[str, Any])


class Joined(Struct, frozen=True, tag="joined", forbid_unknown_fields=True):
    """The first word of a rank: who it is, and the attempt it belongs to (checked at join, SE-16, F-18)."""

    generation: int
    rank: int
    world_size: int
    job_id: str
    token: str
    pid: int
    host: str
    boot_id: str | None  # None: /proc does not show it
    start_ticks: int | None
    capabilities: tuple[str, ...] = ()


class Beat(Struct, frozen=True, omit_defaults=True, tag="beat", forbid_unknown_fields=True):
    """The control thread's word once a second and at every change of state; never from the path of a step (SE-13)."""

    generation: int
    rank: int
    epoch: int
    state: RankState
    step: int
    pending: int
    config_revision: int
    phase: str = ""
    progress_age_seconds: float = 0.0  # since the work last moved: a step ended, a unit of loading was done
    step_p99_seconds: float | None = None  # rolling; None before enough steps
    deadline_seconds: float | None = None  # loading and compiling declare their own
    progress: Body = field(default_factory=dict[str, Any])  # stage, step, total, unit, elapsed_seconds
    metrics: Body = field(default_factory=dict[str, Any])
    metrics_step: int | None = None
    metrics_epoch: int | None = None  # with the revision: what that step was admitted under
    metrics_revision: int | None = None
    warnings: tuple[str, ...] = ()  # each once
    capabilities: tuple[str, ...] = ()  # once the workload's module is imported
    checkpoint: Body = field(default_factory=dict[str, Any])  # path, digest, step: identical to what is live (SE-28)
    preview: Body = field(default_factory=dict[str, Any])  # generation, step, path, next_step, disabled_reason (SE-36)
    inputs: Body = field(default_factory=dict[str, Any])  # digest, generation (SE-23)
    scheduled: Body = field(default_factory=dict[str, Any])  # values that a run's schedule has put in force (SE-24)


class Ended(Struct, frozen=True, omit_defaults=True, tag="ended", forbid_unknown_fields=True):
    """The work of a rank came to a boundary by itself: built, its run's target reached, or an error in a step."""

    generation: int
    rank: int
    epoch: int
    state: RankState  # IDLE, or ERROR; RUNNING: built into somebody's loop that runs; CLOSING: that loop is over
    step: int
    config_revision: int
    reasons: tuple[Reason, ...] = ()
    facts: Body = field(
        default_factory=dict[str, Any]
    )  # after a build: state_digest?, inputs; after a capture: its run


class Autosaved(Struct, frozen=True, omit_defaults=True, tag="autosaved", forbid_unknown_fields=True):
    """What became of an autosave: said by the rank that published it for all, and by each that could not write (SE-10).

    A rank that has written its part and was not the last says nothing; nobody waits for this.
    """

    generation: int
    rank: int
    epoch: int
    step: int
    seconds: float  # on this rank, from its first byte to the name
    facts: Body = field(default_factory=dict[str, Any])  # name, digest, content, state_digests where it was published
    words: str = ""  # why it failed


class Halt(Struct, frozen=True, tag="halt", forbid_unknown_fields=True):
    """Coordinator to rank: fail-stop. A rank of the engine `attach` gives up control instead and trains on."""

    generation: int
    why: str


FromRank = Joined | Beat | Answer | Ended | Autosaved
ToRank = Round | Halt

_FROM_RANK = msgspec_json.Decoder(FromRank)
_TO_RANK = msgspec_json.Decoder(ToRank)
_ENCODER = msgspec_json.Encoder()


def encoded(message: FromRank | ToRank, /) -> bytes:
    """Return a message as the bytes that go over an engine."""
    return _ENCODER.encode(message)


def from_rank(data: bytes, /) -> FromRank:
    """Return what a rank wrote. Raises msgspec.ValidationError or DecodeError."""
    return _FROM_RANK.decode(data)


def to_rank(data: bytes, /) -> ToRank:
    """Return what the coordinator wrote. Raises msgspec.ValidationError or DecodeError."""
    return _TO_RANK.decode(data)
