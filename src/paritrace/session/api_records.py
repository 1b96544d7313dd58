"""What a session's HTTP API is asked and answers, beside the records that a session has anyway (SE-17)."""

from typing import Annotated, Any

from msgspec import Meta, Struct, field

from paritrace.session.bounds import Bound
from paritrace.session.commands import Body, Fences, Reason, Reply
from paritrace.session.journal import Line

MOST_LEASE_SECONDS = 3600.0  # longer, and whoever went away without a word keeps everybody out for a working day
CommandId = Annotated[str, Meta(pattern=r"^[A-Za-z0-9._-]{1,128}$")]


class Ask(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A command; its kind stands in the address. `id`: the caller's own, drawn where it is left out (SE-7)."""

    body: Body = field(default_factory=dict[str, object])
    id: CommandId | None = None
    fences: Fences = Fences()
    timeout_seconds: Annotated[float, Meta(gt=0, le=31_536_000)] | None = None


class Told(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """How a command stands: its reply, or none yet, and then it is asked for again by its id."""

    command_id: str
    reply: Reply | None = None


class Withdrawal(Struct, frozen=True, forbid_unknown_fields=True):
    """Whoever asked has given up (SE-29)."""

    id: CommandId


class DryRun(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What would become of a command now: `begin`, `wait` behind others, or its result at once. Nothing was asked."""

    would: str
    reasons: tuple[Reason, ...] = ()


class BoundsTable(Struct, frozen=True, forbid_unknown_fields=True):
    """Every wait of the session, with its reason (SE-21)."""

    bounds: tuple[Bound, ...]


class JournalPage(Struct, frozen=True, forbid_unknown_fields=True):
    """Lines after a sequence number, the oldest first."""

    lines: tuple[Line, ...]
    more: bool


class Returned(Struct, frozen=True, forbid_unknown_fields=True):
    """The lease to give back."""

    lease: Annotated[str, Meta(max_length=100)]


class Health(Struct, frozen=True, forbid_unknown_fields=True):
    """That the server answers."""

    ok: bool = True


class ErrorTold(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """`kind`: refused (nothing changed) or failed."""

    code: str
    kind: str
    message: str
    fix: str
    details: tuple[str, ...] = ()


class Trouble(Struct, frozen=True, forbid_unknown_fields=True):
    """An error as every command tells it (SU-4)."""

    error: ErrorTold
    ok: bool = False


class LeaseRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """`holder`: words for people. `lease`: the one that is held, to renew it."""

    holder: Annotated[str, Meta(min_length=1, max_length=200)]
    seconds: Annotated[float, Meta(gt=0, le=MOST_LEASE_SECONDS)] = 60.0
    lease: Annotated[str, Meta(max_length=100)] | None = None


class LeaseGiven(Struct, frozen=True, forbid_unknown_fields=True):
    """What is shown with every command from then on."""

    lease: str
    seconds: float


class Event(Struct, frozen=True, forbid_unknown_fields=True):
    """Something that happened. `number` counts from 1; `seconds`: of the coordinator's monotonic clock."""

    number: int
    unix_ns: int
    what: str
    facts: dict[str, Any]


class Events(Struct, frozen=True, forbid_unknown_fields=True):
    """What came after a cursor. `cursor`: for the next question; `lost`: how many had left the ring before it."""

    events: tuple[Event, ...]
    cursor: int
    lost: int = 0
