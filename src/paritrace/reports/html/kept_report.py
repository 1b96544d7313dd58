"""Writes the report of a kept comparison: from its document, its calls and, where they are at hand, its runs (SU-7)."""

from contextlib import ExitStack
from pathlib import Path

from paritrace.errors import EvidenceError, HostError
from paritrace.files import Files
from paritrace.reports.calls_read import KeptCalls
from paritrace.reports.first_screen import Kept
from paritrace.reports.formats import OfComparison, Sink
from paritrace.reports.html.report import comparison
from paritrace.reports.kept_result import KeptResult
from paritrace.runs.reading import Run, open_run


def write_report(result: KeptResult, /, path: Path, *, files: Files, kept: Kept | None = None) -> None:
    """Writes `path` as one HTML file.

    Raises:
        EvidenceError: Refused, `damaged_result`: calls.parquet was kept and cannot be read.
        HostError: Refused: `path` cannot be written; it is as it was before.
    """
    with files.replacing(path) as sink:
        write_into(result, sink, files=files, kept=kept)


def write_into(result: KeptResult, sink: Sink, /, *, files: Files, kept: Kept | None = None) -> None:
    """Writes the report into a sink."""
    calls = result.calls_path()
    with ExitStack() as opened:
        given = OfComparison(
            result.comparison,
            KeptCalls(calls) if files.exists(calls) else (),
            runs=_runs(result, opened),
            kept=kept or Kept(str(result.directory), found_without_name=False),
        )
        comparison(given, sink)


def _runs(result: KeptResult, opened: ExitStack) -> tuple[Run, Run] | None:
    """Both runs, if they still are what was compared; sources of others would say something else."""
    sides = (result.comparison.baseline, result.comparison.candidate)
    try:
        found = [opened.enter_context(open_run(Path(side.path))) for side in sides]
    except (HostError, EvidenceError):  # moved, removed or damaged: the page shows what the result itself holds
        return None
    same = all(run.run_id == side.run_id for run, side in zip(found, sides, strict=True))
    return (found[0], found[1]) if same else None
