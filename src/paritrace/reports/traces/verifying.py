"""Reads a trace of ours back: whole to the last packet and the last byte, or refused by name (SU-8)."""

import hashlib
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError
from msgspec import Struct
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as messages

from paritrace.errors import EvidenceError
from paritrace.files import Files
from paritrace.reports.traces.packets import COMPLETE

_Type = messages.TrackEvent.Type


class Whole(Struct, frozen=True):
    """What the last packet of one rank's part states, and what was found to be so."""

    slices: int
    instants: int
    counters: int
    flow_ends: int
    summed_ns: int
    packets: int
    left_out: dict[str, int]
    facts: dict[str, str]


class _Part:
    """One part of a file, from its first packet to its last: counted as it is read."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self.packets = 0
        self.begins = 0
        self.ends = 0
        self.instants = 0
        self.counters = 0
        self.flow_ends = 0

    def take(self, packet: Any) -> None:
        self.packets += 1
        if not packet.HasField("track_event"):
            return
        event = packet.track_event
        self.flow_ends += len(event.flow_ids) + len(event.terminating_flow_ids)
        self.begins += event.type == _Type.TYPE_SLICE_BEGIN
        self.ends += event.type == _Type.TYPE_SLICE_END
        self.instants += event.type == _Type.TYPE_INSTANT
        self.counters += event.type == _Type.TYPE_COUNTER

    def found(self) -> tuple[int, ...]:
        return (self.begins, self.instants, self.counters, self.flow_ends, self.packets)


def read_back(path: Path, /, *, files: Files) -> tuple[Whole, ...]:
    """Returns what each part of a trace holds (one part for each rank, in a file that was put together).

    Raises:
        EvidenceError: Refused: `torn_trace` where the file ends before a last packet or is cut off within one,
            `damaged_trace` where a last packet states other bytes or counts than are there, `foreign_trace` where it
            is none of ours.
    """
    data = files.read(path)
    try:
        outer = messages.Trace.FromString(data)
    except DecodeError as error:
        raise _torn(path, "it ends within a packet, or is no trace") from error
    if not outer.packet:
        raise _torn(path, "it holds no packet")
    return tuple(_parts(path, outer))


def _parts(path: Path, outer: Any) -> Iterator[Whole]:
    part = _Part()
    for packet in outer.packet:
        last = _stated(packet)
        if last is not None:
            yield _checked(path, part, last)
            part = _Part()
            continue
        part.digest.update(messages.Trace(packet=[packet]).SerializeToString())
        for inner in _inner(path, packet):
            part.take(inner)
    if part.packets:
        raise _torn(path, f"its last {part.packets:,} packets are not followed by {COMPLETE}")


def _inner(path: Path, packet: Any) -> Any:
    if not packet.HasField("compressed_packets"):
        raise EvidenceError(
            f"{path} is no trace that paritrace wrote",
            code="foreign_trace",
            fix="only traces of paritrace say how much they hold; open it in Perfetto as it is",
        )
    try:
        return messages.Trace.FromString(zlib.decompress(packet.compressed_packets)).packet
    except (zlib.error, DecodeError) as error:
        raise _damaged(path, str(error)) from error


def _stated(packet: Any) -> dict[str, str] | None:
    if not packet.HasField("track_event") or packet.track_event.name != COMPLETE:
        return None
    return {annotation.name: annotation.string_value for annotation in packet.track_event.debug_annotations}


def _checked(path: Path, part: _Part, last: dict[str, str]) -> Whole:
    names = ("slices", "instants", "counters", "flow_ends", "packets")
    try:
        stated = tuple(int(last[name]) for name in names)
        whole = Whole(
            **dict(zip(names, stated, strict=True)),
            summed_ns=int(last["summed_ns"]),
            left_out=json.loads(last["left_out"]),
            facts={name: value for name, value in last.items() if name not in {*names, "summed_ns", "left_out"}},
        )
    except (KeyError, ValueError) as error:
        raise _damaged(path, f"its last packet says no {error}") from error
    if part.found() != stated or part.begins != part.ends:
        raise _damaged(path, f"it states {stated} of {', '.join(names)} and holds {part.found()}")
    if part.digest.hexdigest() != last.get("sha256"):
        raise _damaged(path, "its bytes are not those that its last packet names")
    return whole


def _torn(path: Path, why: str) -> EvidenceError:
    return EvidenceError(f"{path} is torn: {why}", code="torn_trace", fix="write it again: paritrace export")


def _damaged(path: Path, why: str) -> EvidenceError:
    return EvidenceError(f"{path} is damaged: {why}", code="damaged_trace", fix="write it again: paritrace export")
