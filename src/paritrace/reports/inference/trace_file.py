"""The file of an inference run's trace: written whole or not at all, and what is said of it (IN-19)."""

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from paritrace.errors import RequestError
from paritrace.evidence.digests import sha256_of
from paritrace.files import Files
from paritrace.reports.formats import Cut
from paritrace.reports.harmless import harmless
from paritrace.reports.traces.events import WORDS, Why
from paritrace.reports.traces.of_inference import Drawn, write_inference

SUFFIX = ".pftrace"


class TraceFile(Struct, frozen=True, kw_only=True):
    """A trace that was written.

    `time_lines`: clocks by the line that they share; `uncertainties_ns`: how surely, by line; `arrows`: memberships
    that are shown; `unjoined`: those that are not, by why; `unused_alignments`: recorded and joining no clocks;
    `left_out`: events that are no slices, by reason.
    """

    path: str
    size: int
    sha256: str
    slices: int
    instants: int
    left_out: dict[str, int]
    arrows: int
    unjoined: dict[str, int]
    time_lines: tuple[tuple[str, ...], ...]
    uncertainties_ns: tuple[int, ...]
    unused_alignments: tuple[str, ...]


def write_trace_file(run: Path, path: Path, /, *, cut: Cut, files: Files) -> TraceFile:
    """Writes the trace of a run's artifact to a file that ends in `.pftrace`.

    Raises:
        RequestError: Refused, `no_such_format`.
        EvidenceError, HostError: Refused, nothing is written: as `write_inference`; the disk says no.
    """
    if path.suffix.lower() != SUFFIX:
        raise RequestError(
            f"{path.name} is no name of a trace of an inference run",
            code="no_such_format",
            fix=f"name a file that ends in {SUFFIX}",
        )
    with files.replacing(path) as sink:
        drawn = write_inference(run, sink, cut=cut, files=files)
    digest = sha256_of(files.iter_chunks(path))
    return TraceFile(
        path=str(path),
        size=digest.num_bytes,
        sha256=digest.sha256,
        slices=sum(part.slices for part in drawn.parts),
        instants=sum(part.instants for part in drawn.parts),
        left_out=_left_out(drawn),
        arrows=drawn.arrows,
        unjoined=drawn.unjoined,
        time_lines=drawn.clocks,
        uncertainties_ns=drawn.uncertainties_ns,
        unused_alignments=drawn.unused_alignments,
    )


def in_words(one: TraceFile, /) -> Iterator[str]:
    """Yields what was written, what the trace leaves out, and which times can be compared in it."""
    yield f"wrote {harmless(one.path)} ({one.size:,} bytes, {one.slices:,} slices, {one.instants:,} instants)"
    for why, number in sorted(one.left_out.items()):
        yield f"    {number:,} events {WORDS[Why(why)]}"
    yield f"    {one.arrows:,} arrows from a request to an iteration, of recorded memberships"
    for reason, number in sorted(one.unjoined.items()):
        yield f"    {number:,} memberships without an arrow: {reason}"
    if len(one.time_lines) > 1:
        yield f"    {len(one.time_lines)} time lines that no record aligns, one behind the other: do not compare times"
        for clocks in one.time_lines:
            yield f"        {harmless(', '.join(clocks))}"
    for clocks, uncertainty_ns in zip(one.time_lines, one.uncertainties_ns, strict=True):
        if len(clocks) > 1:
            yield f"    {len(clocks)} clocks on one time line, aligned by records within {uncertainty_ns:,} ns"
    for unused in one.unused_alignments:
        yield f"    alignment not used: {harmless(unused)}"


def _left_out(drawn: Drawn) -> dict[str, int]:
    left_out: dict[str, int] = {}
    for part in drawn.parts:
        for why, number in part.left_out.items():
            left_out[why] = left_out.get(why, 0) + number
    return left_out
