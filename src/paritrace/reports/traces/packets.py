"""Writes packets through perfetto's own messages: names interned, chunks compressed, the last packet a count (SU-8)."""

import hashlib
import json
import zlib
from typing import Any

from msgspec.structs import asdict
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as messages

from paritrace.reports.formats import Sink
from paritrace.reports.traces.events import Event, Tally, Value
from paritrace.reports.traces.texts import EXACT, LONGEST, integer, number, text

CHUNK_PACKETS = 4096  # about 600 kB before compression
COMPRESSION = 6
BOOTTIME, REALTIME = 6, 1  # ids of perfetto's builtin clocks
COMPLETE = "paritrace.complete"
MOST_INTERNED = 100_000  # of each table: bounds the memory of a source with endless names
MOST_ALIKE = 50_000  # beginnings of packets that are kept, 200 bytes each: more than a training has different calls

_Type = messages.TrackEvent.Type
_BEGIN, _END, _INSTANT, _COUNTER = (
    _Type.TYPE_SLICE_BEGIN,
    _Type.TYPE_SLICE_END,
    _Type.TYPE_INSTANT,
    _Type.TYPE_COUNTER,
)
_CLEARED = messages.TracePacket.SequenceFlags.SEQ_INCREMENTAL_STATE_CLEARED
_NEEDED = messages.TracePacket.SequenceFlags.SEQ_NEEDS_INCREMENTAL_STATE


class Packets:
    """The packets of one sequence. Nothing is in the sink before a chunk is full; `close` writes the rest."""

    def __init__(self, sink: Sink, *, sequence: int) -> None:
        self._sink = sink
        self._sequence = sequence
        self._chunk: Any = messages.Trace()
        self._packets = self._chunk.packet
        self._digest = hashlib.sha256()
        self._num_packets = 0
        self._tables: dict[str, dict[Any, int]] = {
            name: {} for name in ("event_categories", "event_names", "debug_annotation_names", "source_locations")
        }
        self._values: dict[str, int] = {}
        self._alike: dict[Any, bytes] = {}  # by what events have in common: a packet that says it
        self._ends: dict[int, bytes] = {}  # by track

    # --- descriptions --------------------------------------------------------------------------------------------

    def begin_sequence(self, *, clocks: dict[int, int]) -> None:
        """The first packet: nothing before it counts; what the clocks show at time 0."""
        packet = self._packet(0)
        packet.sequence_flags = _CLEARED | _NEEDED
        packet.first_packet_on_sequence = True
        packet.trace_packet_defaults.timestamp_clock_id = BOOTTIME
        snapshot = self._packet(0).clock_snapshot
        snapshot.primary_trace_clock = BOOTTIME
        for identity, value in clocks.items():
            snapshot.clocks.add(clock_id=identity, timestamp=value)

    def process(self, track: int, *, pid: int, name: str, labels: tuple[str, ...]) -> None:
        descriptor = self._packet(None).track_descriptor
        descriptor.uuid = track
        descriptor.process.pid = pid
        descriptor.process.process_name = text(name)
        descriptor.process.process_labels.extend(map(text, labels))
        descriptor.process_ordering = messages.TrackDescriptor.ProcessOrdering.PROCESS_ORDERING_EXPLICIT
        descriptor.sibling_order_rank = pid
        descriptor.child_ordering = messages.TrackDescriptor.ChildTracksOrdering.EXPLICIT

    def track(self, track: int, *, parent: int, name: str, order: int, description: str = "") -> Any:
        descriptor = self._packet(None).track_descriptor
        descriptor.uuid = track
        descriptor.parent_uuid = parent
        descriptor.name = text(name)
        descriptor.sibling_order_rank = order
        descriptor.child_ordering = messages.TrackDescriptor.ChildTracksOrdering.EXPLICIT
        if description:
            descriptor.description = text(description)
        return descriptor

    def counter(self, track: int, *, parent: int, name: str, unit: str, order: int) -> None:
        self.track(track, parent=parent, name=name, order=order).counter.unit_name = unit

    # --- events --------------------------------------------------------------------------------------------------

    def begin(self, track: int, event: Event) -> None:
        self._event(track, event, _BEGIN)

    def end(self, track: int, at: int) -> None:
        known = self._ends.get(track)
        if known is None:
            ending = self._made(track, _END)
            known = self._ends[track] = ending.SerializeToString()
        packet = self._added()
        packet.MergeFromString(known)
        packet.timestamp = at

    def instant(self, track: int, event: Event) -> None:
        self._event(track, event, _INSTANT)

    def count(self, track: int, at: int, value: float) -> None:
        event = self._packet(at).track_event
        event.type = _COUNTER
        event.track_uuid = track
        event.double_counter_value = value

    def _event(self, track: int, event: Event, kind: int) -> None:
        packet = self._added()
        alike = (kind, track, event.name, event.category, event.file, event.function, event.line, event.words)
        known = self._alike.get(alike)
        if known is None:
            known = self._common(packet, track, event, kind)
            if len(self._alike) < MOST_ALIKE:
                self._alike[alike] = known
        packet.MergeFromString(known)
        packet.timestamp = event.start_ns
        filled = packet.track_event
        if event.flows:
            filled.flow_ids.extend(event.flows)  # an end that comes first in time would be dropped without a word
        names, add = self._tables["debug_annotation_names"], filled.debug_annotations.add
        for name, value in event.arguments:  # the busiest loop there is: what is plain takes no call
            annotation = add()
            annotation.name_iid = names.get(name) or self._interned(packet, "debug_annotation_names", name)
            if type(value) is int and -EXACT < value < EXACT:
                annotation.int_value = value
            elif type(value) is str and len(value) <= LONGEST and value.isprintable():
                annotation.string_value = value
            else:
                _fill(annotation, value)

    def _common(self, packet: Any, track: int, event: Event, kind: int) -> bytes:
        """What an event shares with others: a packet without time; names that are new stand in `packet`."""
        made = self._made(track, kind)
        filled = made.track_event
        filled.name_iid = self._interned(packet, "event_names", event.name)
        if event.category:
            filled.category_iids.append(self._interned(packet, "event_categories", event.category))
        if event.file:
            known = self._location(packet, (event.file, event.function, event.line))
            if known:
                filled.source_location_iid = known
        for name, value in event.words:
            annotation = filled.debug_annotations.add()
            annotation.name_iid = self._interned(packet, "debug_annotation_names", name)
            identity = self._value(packet, value)
            if identity:
                annotation.string_value_iid = identity
            else:
                annotation.string_value = text(value)
        data: bytes = made.SerializeToString()
        return data

    # --- interning -----------------------------------------------------------------------------------------------

    def _interned(self, packet: Any, table: str, name: str) -> int:
        known = self._tables[table]
        identity = known.get(name)
        if identity is None:
            shown = name
            if len(known) >= MOST_INTERNED:
                shown, name = "(more names than a trace may hold)", ""
                if name in known:
                    return known[name]
            identity = known[name] = len(known) + 1
            entry = getattr(packet.interned_data, table).add()
            entry.iid = identity
            entry.name = text(shown)
        return identity

    def _location(self, packet: Any, place: tuple[str, str, int]) -> int:
        known = self._tables["source_locations"]
        identity = known.get(place)
        if identity is None:
            if len(known) >= MOST_INTERNED:
                return 0
            identity = known[place] = len(known) + 1
            entry = packet.interned_data.source_locations.add()
            entry.iid = identity
            entry.file_name = text(place[0])
            entry.function_name = text(place[1])
            entry.line_number = max(0, place[2])
        return identity

    def _value(self, packet: Any, value: str) -> int:
        identity = self._values.get(value)
        if identity is None:
            if len(self._values) >= MOST_INTERNED:
                return 0
            identity = self._values[value] = len(self._values) + 1
            entry = packet.interned_data.debug_annotation_string_values.add()
            entry.iid = identity
            entry.str = text(value).encode()
        return identity

    # --- chunks --------------------------------------------------------------------------------------------------

    def _packet(self, at: int | None) -> Any:
        packet = self._added()
        packet.trusted_packet_sequence_id = self._sequence
        packet.sequence_flags = _NEEDED
        if at is not None:
            packet.timestamp = at
        return packet

    def _added(self) -> Any:
        """An empty packet at the end of the chunk."""
        if len(self._packets) >= CHUNK_PACKETS:
            self._flush()
        return self._packets.add()

    def _made(self, track: int, kind: int) -> Any:
        """A packet of this sequence that stands in no chunk."""
        made: Any = messages.TracePacket()
        made.trusted_packet_sequence_id = self._sequence
        made.sequence_flags = _NEEDED
        made.track_event.type = kind
        made.track_event.track_uuid = track
        return made

    def _flush(self) -> None:
        self._num_packets += len(self._packets)
        outer = messages.Trace()
        outer.packet.add().compressed_packets = zlib.compress(self._chunk.SerializeToString(), COMPRESSION)
        self._write(outer.SerializeToString())
        self._chunk = messages.Trace()
        self._packets = self._chunk.packet

    def _write(self, data: bytes) -> None:
        self._digest.update(data)
        self._sink.write(data)

    def close(self, track: int, tally: Tally, *, at: int, facts: dict[str, str]) -> None:
        """Write what is left, then the packet that says how much there is: a file without it is not whole."""
        self._flush()
        last = messages.Trace()
        packet = last.packet.add()
        packet.trusted_packet_sequence_id = self._sequence
        packet.timestamp = at
        packet.track_event.type = _INSTANT
        packet.track_event.track_uuid = track
        packet.track_event.name = COMPLETE
        told = asdict(tally) | {"packets": self._num_packets, "sha256": self._digest.hexdigest()} | facts
        for name, value in told.items():
            annotation = packet.track_event.debug_annotations.add()
            annotation.name = name
            annotation.string_value = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
        self._write(last.SerializeToString())


def _fill(annotation: Any, value: Value) -> None:
    """Set a value as every reader of the format shows it."""
    if isinstance(value, bool):
        annotation.bool_value = value
        return
    shown = text(value) if isinstance(value, str) else integer(value) if isinstance(value, int) else number(value)
    if isinstance(shown, int):
        annotation.int_value = shown
    elif isinstance(shown, float):
        annotation.double_value = shown
    else:
        annotation.string_value = shown
