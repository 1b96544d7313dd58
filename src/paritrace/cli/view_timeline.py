"""What `paritrace view --perfetto` shows: the timeline of one run or comparison, or a file where no page is (SU-13)."""

import tempfile
from pathlib import Path

from msgspec import Struct

from paritrace.cli.output import note, write_json, write_text
from paritrace.errors import RequestError
from paritrace.files import LOCAL
from paritrace.reports.exporting import export_result, export_run
from paritrace.reports.formats import Cut
from paritrace.reports.inference.trace_file import write_trace_file
from paritrace.reports.shelf import Shelf
from paritrace.reports.traces.of_inference import has_evidence_alone
from paritrace.runs.reading import open_run
from paritrace.web.perfetto import installed
from paritrace.web.timelines import INSTALL, PUBLIC

FILE = "trace.pftrace"


class TimelineOf(Struct, frozen=True):
    """A run or comparison, the address of its timeline, and whether Perfetto's page is installed here."""

    path: Path
    is_run: bool
    page: str
    has_page: bool


def timeline_of(shelf: Shelf, /) -> TimelineOf:
    """Returns the one run or comparison that a path names; a run is meant by its path, not the comparisons below it.

    Raises:
        RequestError: Refused, `several_to_view`: there is none, or several.
    """
    has_page = installed() is not None
    runs = [TimelineOf(Path(one.line.path), True, f"/r/{one.key}/timeline", has_page) for one in shelf.runs]
    comparisons = [TimelineOf(Path(one.path), False, f"/c/{one.key}/timeline", has_page) for one in shelf.comparisons]
    named = [one for one in runs if str(one.path) == shelf.path]
    found = named or [*runs, *comparisons]
    if len(found) != 1:
        raise RequestError(
            f"{shelf.path} holds {len(found)} runs and comparisons, and a timeline shows one",
            code="several_to_view",
            fix="name the run or the comparison, or leave --perfetto out and choose on the first page",
        )
    return found[0]


def write_trace(of: TimelineOf, /, *, as_json: bool) -> None:
    """Write the trace to a new temporary folder, and say where it can be opened."""
    place = Path(tempfile.mkdtemp(prefix="paritrace-trace-")) / FILE
    if of.is_run:
        with open_run(of.path) as run:
            if has_evidence_alone(run.folder):
                write_trace_file(run.folder, place, cut=Cut(), files=LOCAL)
            else:
                export_run(run, place, names=("pftrace",), cut=Cut(), files=LOCAL)
    else:
        export_result(of.path, place, names=("pftrace",), cut=Cut(), files=LOCAL)
    if as_json:
        write_json({"trace": str(place), "open_at": PUBLIC, "fix": INSTALL})
        return
    write_text(f"{place}\nopen it at {PUBLIC}: it is read in your browser and sent nowhere")
    note(f"Perfetto's page is not installed here: {INSTALL}")
