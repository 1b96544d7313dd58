"""What happens to a rank, and what its machine asks its shell to do (SE-3): records only.

The control thread holds the machine: it takes messages and, through a queue, the words of the work thread. The work
thread does one `Do` at a time; between two steps it asks nothing of anybody: it compares the step with one number,
the limit, which `Limit` lowers or raises under the lock of the step (see `rank/stepping.py`).
"""

from typing import Any

from msgspec import Struct, field

from paritrace.session.commands import Body, Kind, Reason
from paritrace.session.messages import FromRank, RoundName, ToRank


class Received(Struct, frozen=True):
    """A message of the coordinator. `step`: the one that the work thread comes to next.

    The shell holds the lock of the step from reading it until the actions of this event are done, so that a `RESERVE`
    is answered by `step` and a `Limit` of it, and no step can begin in between.
    """

    message: ToRank
    step: int


class Stepped(Struct, frozen=True):
    """The work thread has come to its limit and parked there, its device drained. Said once for each limit met.

    `facts` go into `Ended` where the step is the run's target (a capture that ended, an autosave).
    """

    step: int
    facts: Body = field(default_factory=dict[str, Any])


class Done(Struct, frozen=True):
    """A `Do` is done. `released`: something resident changed before the end, so that a fault is fatal (SE-7)."""

    command_id: str
    name: RoundName
    ok: bool
    released: bool = False
    digest: str | None = None
    config_revision: int | None = None  # the one now in force, where the work changed it
    step: int | None = None  # the one now in force: a load sets it
    reasons: tuple[Reason, ...] = ()
    notes: tuple[str, ...] = ()
    facts: Body = field(default_factory=dict[str, Any])


class Broke(Struct, frozen=True):
    """A step, or the first build, raised; or the first check found what is missing: all of it."""

    step: int
    reasons: tuple[Reason, ...]


class Built(Struct, frozen=True):
    """`load` and `build` are through. `target`: somebody else's loop runs already, as far as it wants (2**62).

    `capabilities`: those of the workload, known once its module is imported, which may take longer than joining may.
    """

    step: int
    config_revision: int
    target: int | None = None
    capabilities: tuple[str, ...] = ()
    facts: Body = field(default_factory=dict[str, Any])


class Finished(Struct, frozen=True):
    """Somebody else's loop is over: there is nothing more to control."""

    step: int


class AutosaveEnded(Struct, frozen=True):
    """An autosave was published by this rank, or failed on it: to be told, and waited for by nobody."""

    step: int
    seconds: float
    facts: Body = field(default_factory=dict[str, Any])
    words: str = ""


class Cut(Struct, frozen=True):
    """The coordinator is gone."""


RankEvent = Received | Stepped | Done | Broke | Built | Finished | AutosaveEnded | Cut


class Send(Struct, frozen=True):
    """Write to the coordinator."""

    message: FromRank


class Do(Struct, frozen=True):
    """Have the work thread do a round of a command: `rank/working.py` has one function per (kind, round).

    Work is done in the order given, and before further steps. ABORT discards what the command prepared or voted for;
    its `Done` is waited for by nobody.
    """

    command_id: str
    kind: Kind
    name: RoundName
    body: Body


class Limit(Struct, frozen=True):
    """The work thread may begin steps below this one, and must stop there: told as `Stepped`."""

    step: int


class RunUntil(Struct, frozen=True):
    """Begin or resume stepping to a target, which is the limit then, under what was admitted."""

    target: int
    epoch: int
    config_revision: int


class Leave(Struct, frozen=True):
    """End this process (local, Ray), or give up control and train on (attach)."""

    why: str


RankAction = Send | Do | Limit | RunUntil | Leave
