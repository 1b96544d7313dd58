"""Whose word and whose clock the events of one Nsight Systems export are (IN-2, IN-11)."""

from collections.abc import Iterator, Mapping

from paritrace.evidence.ids import Ref
from paritrace.inference.context import ClockKind, CollectionMode, Context, ContextFacts, Provenance
from paritrace.inference.identities import derived_id
from paritrace.inference.importing import Scope
from paritrace.inference.records import ClockAlignment

SOURCE = "nsys"
_UNCERTAINTY_NS = 1_000_000  # assumed: the export gives two clocks at one moment, and not how far apart they were read


class NsysContexts:
    """The contexts of one export. Its times count from the start of its session: a clock of its own."""

    def __init__(self, scope: Scope, /, *, attachment_id: str, host: str | None) -> None:
        self._scope = scope
        self._host = host
        self._made: dict[tuple[int | None, str | None], Context] = {}
        self.attachment_id = attachment_id
        self.producer = f"nsys:{attachment_id.rpartition(':')[2]}"
        self.correlation_scope = Ref(self.producer, "trace")
        self.clock_domain = f"{attachment_id}/clock"
        self.version: str | None = None

    def event_id(self, table: str, place: int, /) -> str:
        """Return the id of a row of a table."""
        return f"{self.producer}:{table}:{place}"

    def of(self, pid: int | None, /, *, device_uuid: str | None = None) -> Context:
        """Return the context of a process, and of a device where work ran on one that is known."""
        made = self._made.get((pid, device_uuid))
        if made is None:
            made = self._made[pid, device_uuid] = Context(self._facts(pid, device_uuid))
        return made

    def alignments(self, start: Mapping[str, int], /) -> Iterator[ClockAlignment]:
        """Yield what the export's clock is in the two clocks that it names for its session's start."""
        for column, domain in (("utcEpochNs", "unix_epoch_ns"), ("systemClockNs", "system_clock_ns")):
            if column in start:
                yield ClockAlignment(
                    context=self.of(None),
                    event_id=derived_id("alignment", self.attachment_id, column),
                    from_clock_domain=self.clock_domain,
                    to_clock_domain=f"{self._host or self.attachment_id}/{domain}",
                    offset_ns=start[column],
                    uncertainty_ns=_UNCERTAINTY_NS,
                    metadata={"basis": f"TARGET_INFO_SESSION_START_TIME.{column}", "uncertainty": "assumed"},
                )

    def _facts(self, pid: int | None, device_uuid: str | None) -> ContextFacts:
        return ContextFacts(
            run_id=self._scope.run_id,
            session_id=self._scope.session_id,
            producer_id=self.producer,
            source=SOURCE,
            source_version=self.version,
            clock_domain=self.clock_domain,
            clock_kind=ClockKind.DEVICE,
            collection_mode=CollectionMode.IMPORTED,
            provenance=Provenance.OBSERVED,
            host=self._host,
            device_uuid=device_uuid,
            pid=pid,
        )
