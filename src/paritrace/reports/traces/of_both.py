"""The trace of a run that has calls and inference evidence: both, on one line of time where clocks are aligned (IN-19).

The clock of the calls is the wall clock of their host and boot. Where a record aligns a clock of the evidence with it,
both stand on one line; what nothing aligns stands behind, as lines of the evidence alone do (ADR 0057).
"""

from pathlib import Path

from msgspec import Struct

from paritrace.files import LOCAL, Files
from paritrace.inference.artifact import ARTIFACT_NAME, Events, place_of
from paritrace.reports.formats import Cut, Sink
from paritrace.reports.traces.events import Tally
from paritrace.reports.traces.inference_rows import found_in
from paritrace.reports.traces.of_inference import Beside, Drawn, write_inference
from paritrace.reports.traces.of_run import ranks_of, write_ranks
from paritrace.reports.traces.time_lines import Span, behind, time_lines
from paritrace.reports.traces.zero import moved, zero_of
from paritrace.runs.reading import Run

CALLS_CLOCK = "the clocks of the calls"  # where there are several, none of which is another's


class Whole(Struct, frozen=True):
    """What a trace holds: of each rank's calls, and of the evidence."""

    calls: tuple[Tally, ...]
    evidence: Drawn


def has_evidence_too(folder: Path, /) -> bool:
    """Say whether a run has inference evidence, whatever else it has."""
    return (folder / ARTIFACT_NAME).is_file()


def write_both(run: Run, sink: Sink, /, *, cut: Cut, most_in_all: int | None = None, files: Files = LOCAL) -> Whole:
    """Writes the calls of all ranks, and behind them the evidence, which begins at the same 0 where clocks allow it.

    Args:
        most_in_all: events of all ranks and processes, in place of what `cut` says of it.

    Raises:
        EvidenceError, HostError: Refused: as reading the artifact; `times_too_far_apart`.
    """
    found = found_in(Events(place_of(run.folder), files=files))
    zero, ranks = zero_of(run), ranks_of(run)
    names = set(zero.domains.values())
    clock = names.pop() if len(names) == 1 else CALLS_CLOCK
    begun = zero.unix_ns or 0
    own = found.spans.get(clock, Span(begun, begun))
    spans = found.spans | {clock: Span(min(begun, own.first_ns), max(begun, own.last_ns))}
    lines = time_lines(spans, alignments=found.alignments, leading=(clock,))
    before = begun + lines.lines[0].offsets[clock]  # what the evidence begins earlier
    if most_in_all is not None:
        cut = Cut(max_events=max(1, most_in_all // max(1, len(ranks) + len(found.owners))))
    traces = write_ranks(run, sink, zero=moved(zero, before), cut=cut)
    lines = behind(lines, max((one.latest_ns for one in traces), default=0))
    beside = Beside(found=found, lines=lines, num_processes=max(ranks, default=-1) + 1)
    drawn = write_inference(run.folder, sink, cut=cut, beside=beside, files=files)
    return Whole(calls=tuple(one.tally for one in traces), evidence=drawn)
