"""Whose word and whose clock the events of one trace are: contexts, base time, readings (IN-2, IN-10, B-17)."""

from collections.abc import Iterable, Iterator, Mapping
from typing import cast

from paritrace.errors import RequestError
from paritrace.evidence.ids import Ref
from paritrace.inference.clock_marks import Measured
from paritrace.inference.context import ClockKind, CollectionMode, Context, ContextFacts, Provenance
from paritrace.inference.identities import derived_id
from paritrace.inference.importers.kineto_times import LARGEST_NS
from paritrace.inference.importing import Scope
from paritrace.inference.plain_values import whole
from paritrace.inference.records import ClockAlignment

SOURCE = "torch.profiler"
BASE_TIME = "baseTimeNanoseconds"
READINGS = "clock readings"


def uuids_of(text: str, /) -> dict[str, str]:
    """Read `ORDINAL=UUID,…`.

    Raises:
        RequestError: Refused, `bad_device_uuid`.
    """
    found: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        ordinal, equals, uuid = (one.strip() for one in part.partition("="))
        if not (ordinal and equals and uuid) or ordinal in found:
            raise RequestError(
                f"{part!r} names no device", code="bad_device_uuid", fix="write ORDINAL=UUID, one for each ordinal"
            )
        found[ordinal] = uuid
    return found


class TraceContexts:
    """The contexts of one trace. `members` may still be filled while it is read: what is known by then is used.

    All times are of the trace's own clock; where it gives its base time, one alignment says what they are in Unix time.
    """

    def __init__(
        self,
        scope: Scope,
        /,
        *,
        attachment_id: str,
        members: Mapping[str, object],
        host: str | None,
        uuids: Mapping[str, str],
    ) -> None:
        self._scope = scope
        self.attachment_id = attachment_id
        self._members = members
        self._host = host
        self._uuids = uuids
        self._made: dict[tuple[str, str | None], Context] = {}
        self.producer = f"kineto:{attachment_id.rpartition(':')[2]}"
        self.correlation_scope = Ref(self.producer, "trace")

    @property
    def clock_domain(self) -> str:
        """The name of the trace's clock."""
        return f"{self.attachment_id}/clock"

    def event_id(self, place: int, /) -> str:
        """Return the id of the event at a place in the file."""
        return f"{self.producer}:{place}"

    def of(self, pid: str, /, *, device: str | None = None) -> Context:
        """Return the context of a process, and of a device where work ran on one."""
        key = (pid if device is None else "", device)
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = Context(self._facts(*key))
        return made

    def base_time(self, members: Mapping[str, object], /) -> Iterator[ClockAlignment]:
        """Yield what the trace's clock is in Unix time, nothing where the trace does not say it."""
        base = base_time_of(members)
        if base is None:
            return
        yield ClockAlignment(
            context=self.of(""),
            event_id=derived_id("alignment", self.attachment_id),
            from_clock_domain=self.clock_domain,
            to_clock_domain=f"{self._named_host() or self.attachment_id}/unix_epoch_ns",
            offset_ns=base,
            uncertainty_ns=0,
            metadata={"basis": BASE_TIME},
        )

    def read_beside(self, measured: Iterable[Measured], /) -> Iterator[ClockAlignment]:
        """Yield how clocks that were read while the trace was recorded stand to the trace's own."""
        for one in measured:
            yield ClockAlignment(
                context=self.of(""),
                event_id=derived_id("alignment", self.attachment_id, one.clock),
                from_clock_domain=self.clock_domain,
                to_clock_domain=one.clock,
                offset_ns=one.offset_ns,
                uncertainty_ns=one.uncertainty_ns,
                valid_from_ns=one.first_ns,
                valid_to_ns=one.last_ns,
                metadata={"basis": READINGS, "series": one.num_series},
            )

    def _facts(self, pid: str, device: str | None) -> ContextFacts:
        world = self._members.get("distributedInfo")
        ranks = cast("dict[str, object]", world) if isinstance(world, dict) else {}
        world_size = whole(ranks.get("world_size"))
        return ContextFacts(
            run_id=self._scope.run_id,
            session_id=self._scope.session_id,
            producer_id=self.producer,
            source=SOURCE,
            clock_domain=self.clock_domain,
            clock_kind=ClockKind.DEVICE,
            collection_mode=CollectionMode.IMPORTED,
            provenance=Provenance.OBSERVED,
            host=self._named_host(),
            device_uuid=None if device is None else self._uuids.get(device),
            pid=int(pid) if pid.isascii() and pid.isdecimal() and len(pid) < 19 else None,
            rank=whole(ranks.get("rank")),
            world_size=world_size or None,
        )

    def _named_host(self) -> str | None:
        named = self._members.get("host_name")
        return self._host or (named if isinstance(named, str) and named else None)


def base_time_of(members: Mapping[str, object], /) -> int | None:
    """Return the Unix time at which a trace's clock begins, None where the trace tells none that a clock could."""
    base = whole(members.get(BASE_TIME))
    return base if base is not None and base < LARGEST_NS else None


def without_base_time(members: Mapping[str, object], /) -> str:
    """Return in words why a trace has no base time."""
    told = "its base time is none that a clock tells" if BASE_TIME in members else "it gives no base time"
    return f"{told}: no common time base with other traces"
