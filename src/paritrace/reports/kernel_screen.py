"""What a person sees of two traces' device work: where their sequences first part, and what took longer (IN-18)."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from paritrace.inference.importers.kineto_account import stop_told
from paritrace.inference.kernel_sequences import KernelComparison, Parting, Side
from paritrace.inference.trace_reading import TraceRead
from paritrace.reports.harmless import harmless, shorten
from paritrace.reports.layout import CONTENT, Section, fit, paragraph
from paritrace.reports.wording import count

FORMAT = "paritrace-trace-comparison"
VERSION = "1.0"
LIMITS = (
    "work is paired by name and order inside its stream; a kernel that was renamed has no partner",
    "durations are told and not judged: one trace of each side says nothing of noise",
)
NAME_COLUMNS, TIMES_SHOWN, PARTINGS_SHOWN = 56, 6, 3


class TraceRef(Struct, frozen=True):
    """A trace as a comparison names it; `stopped` says where it could not be read further, "" where it was."""

    path: str
    sha256: str
    stopped: str


class TracesCompared(Struct, frozen=True):
    """The document of `compare FILE FILE`."""

    format: str
    version: str
    baseline: TraceRef
    candidate: TraceRef
    kernels: KernelComparison
    limits: tuple[str, ...]


def trace_ref(read: TraceRead, path: Path, /) -> TraceRef:
    """Returns what names a trace that was read."""
    stopped = "" if read.text.stop is None else stop_told(read.text.stop)
    return TraceRef(path=str(path), sha256=read.sha256, stopped=stopped)


def traces_compared(baseline: TraceRef, candidate: TraceRef, kernels: KernelComparison, /) -> TracesCompared:
    """Returns the document."""
    return TracesCompared(FORMAT, VERSION, baseline, candidate, kernels, LIMITS)


def traces_document(compared: TracesCompared, /) -> bytes:
    """Returns the document of `compare FILE FILE --json`."""
    return msgspec.json.encode(compared)


def kernel_screen(compared: TracesCompared, /) -> str:
    """Returns the screen as plain text, at most 34 lines of 100 columns."""
    kernels = compared.kernels
    stopped = [
        line
        for side, ref in (("baseline", compared.baseline), ("candidate", compared.candidate))
        if ref.stopped
        for line in paragraph(f"{side}: {ref.stopped}", most=2)
    ]
    sections = (
        Section(anchor="kernels", lines=tuple(_headline(kernels)), keep=4),
        Section(anchor="parts", lines=tuple(_partings(kernels)), keep=4, most=14, spaced=True),
        Section(anchor="times", lines=tuple(_times(kernels)), keep=2, most=TIMES_SHOWN + 1, spaced=True),
        Section(anchor="not read", lines=tuple(stopped), keep=2, most=4, spaced=True),
        Section(anchor="limits", lines=tuple(line for one in LIMITS for line in paragraph(one, most=2)), spaced=True),
    )
    return "\n".join(fit(sections, closing="more: paritrace compare BASE CAND --json")) + "\n"


def _headline(kernels: KernelComparison) -> Iterator[str]:
    if not (kernels.baseline.work or kernels.candidate.work):
        yield "Neither trace holds device work."
    elif kernels.alike:
        yield f"Both traces run the same device work in the same order: {count(kernels.pairs, 'piece')}."
    elif kernels.partings:
        yield from paragraph(_first(kernels.partings[0]), most=3)
    else:
        yield f"The same device work in another order: {kernels.reordered:,} of {kernels.pairs:,} moved."
    unpaired = sum(kernels.unpaired_baseline.values()), sum(kernels.unpaired_candidate.values())
    yield (
        f"{kernels.pairs:,} paired; without a partner {unpaired[0]:,} of {_told(kernels.baseline)} and "
        f"{unpaired[1]:,} of {_told(kernels.candidate)}"
    )
    untimed = kernels.baseline.untimed + kernels.candidate.untimed
    if untimed:
        yield f"{untimed:,} without a start have no place in a sequence and were left out"


def _told(side: Side) -> str:
    return f"{side.work:,} on {count(side.streams, 'stream')}"


def _first(parting: Parting) -> str:
    where = f"device {harmless(parting.device)} stream {harmless(parting.stream)}"
    after = f"after {count(parting.after, 'alike piece')}" if parting.after else "from the start"
    return (
        f"Device work first parts on {where}, {after}: {count(parting.num_baseline, 'piece')} of the baseline alone, "
        f"{parting.num_candidate:,} of the candidate."
    )


def _partings(kernels: KernelComparison) -> Iterator[str]:
    for parting in kernels.partings[:PARTINGS_SHOWN]:
        last = shorten(parting.last_alike, width=NAME_COLUMNS) or "the start"
        yield f"device {harmless(parting.device)} stream {harmless(parting.stream)}, after {last}: {parting.reason}"
        for mark, names, number in (
            ("-", parting.baseline, parting.num_baseline),
            ("+", parting.candidate, parting.num_candidate),
        ):
            if names:
                more = f" and {number - 1:,} more" if number > 1 else ""
                yield f"  {mark} {shorten(names[0], width=NAME_COLUMNS)}{more}"
    if kernels.num_partings > PARTINGS_SHOWN:
        yield f"{kernels.num_partings - PARTINGS_SHOWN:,} further places"


def _times(kernels: KernelComparison) -> Iterator[str]:
    for one in kernels.times[:TIMES_SHOWN]:
        ratio = f"{one.candidate_ns / one.baseline_ns:.2f} x" if one.baseline_ns else "from 0"
        figures = f"{one.baseline_ns / 1e6:,.3f} -> {one.candidate_ns / 1e6:,.3f} ms  {ratio}"
        yield f"{figures}  {one.pairs:,} x {shorten(one.name, width=CONTENT - len(figures) - 16)}"
