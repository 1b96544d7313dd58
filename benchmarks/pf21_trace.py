"""PF-21: a Perfetto trace of 200,000 calls against a bare loop over the library's own messages."""

import argparse
import gc
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as messages

from benchmarks.measuring import Row, print_table
from paritrace.compare.result import Agreement, Basis, Group, Status
from paritrace.compare.rows import CallRow, Correspondence, Side, SlotRow
from paritrace.files import LOCAL
from paritrace.reports.formats import OfComparison
from paritrace.reports.traces.of_comparison import write_comparison
from tests.reports import comparisons

CALLS = 200_000  # of both sides
CHUNK = 4096
RUNS = 5
SLOTS = tuple(
    SlotRow(direction, name, "float32", (8, 64), 2048, "00112233445566aa", agreement=Agreement.EQUAL)
    for direction, name in (("i", "args[0]"), ("i", "args[1]"), ("o", "out"))
)


def rows() -> Iterator[CallRow]:
    """Calls of both sides, each paired; three tensors each, 200 operators. All writers are given these."""
    for side in Side:
        for number in range(CALLS // 2):
            yield CallRow(
                side, 0, f"session-{side}", number, number // 5000, 0, "forward", "op",
                f"aten.op{number % 200}.default",
                "train.py", number % 300, f"layers.{number % 100}", "stream", "scope", "key", Status.OK,
                Correspondence.PAIRED, Basis.UNIQUE_KEY, None, number, False, None, Group.WITHIN, SLOTS, "", "main",
                number * 1000, 900,
            )  # fmt: skip


def product(path: Path) -> None:
    """What `paritrace export` does with them."""
    with LOCAL.replacing(path) as sink:
        write_comparison(OfComparison(comparison=comparisons.agreeing(), rows=rows()), sink)


def bare(path: Path, *, compressed: bool = True) -> None:
    """The same facts, one message after the other, nothing interned or counted; chunks as large as the product's."""
    with path.open("wb") as file:
        trace = messages.Trace()
        for row in rows():
            _bare_call(trace, row)
            if len(trace.packet) >= CHUNK:
                file.write(_packed(trace, compressed=compressed))
                trace = messages.Trace()
        file.write(_packed(trace, compressed=compressed))


def _packed(trace: Any, *, compressed: bool) -> bytes:
    data: bytes = trace.SerializeToString()
    if not compressed:
        return data
    outer = messages.Trace()
    outer.packet.add().compressed_packets = zlib.compress(data)
    packed: bytes = outer.SerializeToString()
    return packed


def _bare_call(trace: Any, row: CallRow) -> None:
    track = 1 if row.side is Side.BASELINE else 2
    packet = trace.packet.add()
    packet.timestamp = row.start_ns
    packet.trusted_packet_sequence_id = 1
    event = packet.track_event
    event.type = messages.TrackEvent.TYPE_SLICE_BEGIN
    event.track_uuid = track
    event.name = row.function
    event.categories.append(row.level)
    event.source_location.file_name = row.file
    event.source_location.line_number = row.line
    event.flow_ids.append(row.record_id + 1)
    numbers = (("record_id", row.record_id), ("step", row.step), ("microbatch", 0), ("partner", row.partner))
    for name, number in numbers:
        annotation = event.debug_annotations.add()
        annotation.name = name
        annotation.int_value = number
    texts = (
        ("phase", row.phase), ("module", row.module), ("called", row.function), ("status", "ok"),
        ("correspondence", "paired"), ("basis", "unique_key"), ("validation", "unreviewed"), ("group", "within"),
    )  # fmt: skip
    for name, text in (*texts, *((slot.name, f"{slot.dtype}{list(slot.shape)} {slot.bits}") for slot in row.slots)):
        annotation = event.debug_annotations.add()
        annotation.name = name
        annotation.string_value = text
    packet = trace.packet.add()
    packet.timestamp = row.start_ns + row.duration_ns
    packet.trusted_packet_sequence_id = 1
    packet.track_event.type = messages.TrackEvent.TYPE_SLICE_END
    packet.track_event.track_uuid = track


def plain(path: Path) -> None:
    """The bare loop without compression."""
    bare(path, compressed=False)


THINGS: dict[str, Callable[[Path], None]] = {"product": product, "bare": bare, "plain": plain}


def once(name: str) -> None:
    """One thing in a process of its own: CPU seconds, peak memory and size of the file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.pftrace"
        gc.collect()
        before = time.process_time()
        THINGS[name](path)
        cpu = time.process_time() - before
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        sys.stdout.write(f"{cpu} {peak} {path.stat().st_size}\n")


def main() -> None:
    """Print the table of PF-21."""
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in THINGS}
    for _ in range(RUNS):
        for name in THINGS:
            command = [sys.executable, "-m", "benchmarks.pf21_trace", "--once", name]
            told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout.split()
            found[name].append((float(told[0]), float(told[1]), float(told[2])))
    cpu, peak, size = (
        {name: statistics.median(run[which] for run in runs) for name, runs in found.items()} for which in range(3)
    )
    seconds = ", ".join(f"{name} {value:.2f}" for name, value in cpu.items())
    print_table(
        "PF-21",
        [
            Row(
                f"trace of {CALLS:,} calls, CPU",
                cpu["product"] / cpu["bare"],
                "a bare loop that compresses too",
                ("<=", 1.3),
            ),
            Row("the same", cpu["product"] / cpu["plain"], "a bare loop without compression"),
            Row("trace, peak memory, MiB", peak["product"], "1 MiB; the interpreter included", ("<=", 200)),
            Row("size of the file", size["product"] / size["bare"], "the bare loop's, compressed"),
            Row("size of the file", size["product"] / size["plain"], "the bare loop's, as it is"),
        ],
        notes=(f"CPU seconds: {seconds}. The calls are made while they are written, by all three.",),
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--once", choices=THINGS)
    chosen = parser.parse_args().once
    if chosen:
        once(chosen)
    else:
        main()
