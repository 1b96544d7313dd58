"""The lines of an artifact behind a figure: of a kind, a device, an iteration, or linked by a word (P9)."""

from msgspec import Struct

from paritrace.evidence.ids import Ref
from paritrace.inference.artifact import Events
from paritrace.inference.device_time import device_of
from paritrace.inference.identities import event_bytes
from paritrace.inference.linking import LinkTables, link
from paritrace.inference.records import Activity, AnyEvent, Iteration, Link, Membership, Stage

LINKED, UNLINKED = "linked", "unlinked"
LONGEST_LINE = 2000  # characters of a line that are given; its number finds the rest


class Wanted(Struct, frozen=True, kw_only=True):
    """What is looked for; an empty text asks for nothing. `linked`: a basis, a reason, `linked` or `unlinked`.

    `producer` and `iteration` name an iteration: itself, who took part, its stages, and what is linked to it.
    """

    kind: str = ""
    domain: str = ""
    linked: str = ""
    device: str = ""
    clock: str = ""
    producer: str = ""
    iteration: str = ""


class EventLine(Struct, frozen=True):
    """One line as it stands in the artifact. `link`: what the rule derives of an activity, "" for other events."""

    line: int
    kind: str
    event_id: str
    text: str
    link: str


class EventLines(Struct, frozen=True):
    """A stretch of the lines that were asked for; `total`: how many there are."""

    wanted: Wanted
    total: int
    offset: int
    lines: tuple[EventLine, ...]


def event_lines(events: Events, wanted: Wanted, *, offset: int, limit: int) -> EventLines:
    """Return a stretch of the lines; links are derived only where they are asked for.

    Raises:
        EvidenceError, HostError: Refused, as reading the artifact.
    """
    tables = LinkTables(events) if wanted.linked or wanted.iteration else None
    found: list[EventLine] = []
    total = 0
    for number, event in events.numbered():
        derived = next(link((event,), tables=tables)) if tables and isinstance(event, Activity) else None
        if not _is_wanted(event, wanted, derived):
            continue
        if offset <= total < offset + limit:
            found.append(_line(number, event, derived))
        total += 1
    return EventLines(wanted, total, offset, tuple(found))


def _is_wanted(event: AnyEvent, wanted: Wanted, derived: Link | None) -> bool:
    if wanted.kind and _kind(event) != wanted.kind:
        return False
    if wanted.iteration and not _is_of(event, Ref(wanted.producer, wanted.iteration), derived):
        return False
    if not (wanted.domain or wanted.linked or wanted.device or wanted.clock):
        return True
    return isinstance(event, Activity) and _is_wanted_activity(event, wanted, derived)


def _is_wanted_activity(event: Activity, wanted: Wanted, derived: Link | None) -> bool:
    if wanted.domain and event.domain.value != wanted.domain:
        return False
    if wanted.linked and wanted.linked not in _words(derived):
        return False
    if not (wanted.device or wanted.clock):
        return True
    device = device_of(event)
    return device is not None and (device.device, device.clock_domain) == (wanted.device, wanted.clock)


def _is_of(event: AnyEvent, ref: Ref, derived: Link | None) -> bool:
    match event:
        case Iteration() | Membership() | Stage():
            return event.iteration_ref == ref
        case Activity():
            return derived is not None and derived.iteration_ref == ref
        case _:
            return False


def _words(derived: Link | None) -> tuple[str, ...]:
    if derived is None:
        return ()
    if derived.basis is not None:
        return (derived.basis.value, LINKED)
    return (derived.reason.value if derived.reason else "", UNLINKED)


def _kind(event: AnyEvent) -> str:
    return str(event.__struct_config__.tag)


def _line(number: int, event: AnyEvent, derived: Link | None) -> EventLine:
    text = event_bytes(event).decode("utf-8", "replace")[:LONGEST_LINE]
    return EventLine(number, _kind(event), event.event_id, text, next(iter(_words(derived)), ""))
