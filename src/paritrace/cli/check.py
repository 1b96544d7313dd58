"""`paritrace check`: one run against itself (CP-25)."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from paritrace.cli.allowances import allowed_by, judgement, judgement_options, status_of_check
from paritrace.cli.github import tell_of_check
from paritrace.cli.options import json_option, scratch_option
from paritrace.cli.output import Printed, write_json_bytes
from paritrace.cli.progress import progress
from paritrace.cli.report_options import Output, one_format, report_options, require_a_place
from paritrace.cli.screens import write_screen
from paritrace.cli.trace_files import is_export, is_trace

if TYPE_CHECKING:
    from paritrace.compare.checks_result import Checked, Ends
    from paritrace.reports.formats import OfCheck
    from paritrace.runs.reading import Run


@click.command()
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN|FILE")
@report_options
@scratch_option
@judgement_options
@json_option
def check(  # noqa: PLR0913  one parameter per option of the synopsis; they become two records at once
    run: Path,
    output: Path | None,
    formats: tuple[str, ...],
    exit_code: bool,
    allow: tuple[str, ...],
    exit_zero: bool,
    as_json: bool,
) -> int:
    """Check RUN against itself: gradients, parameters, batches, finite values, dtypes, recomputation, completeness.

    Of a profiler's trace (FILE: JSON, gzip, or an SQLite export of Nsight Systems): whether it is whole, what was lost,
    device work and launches without each other, times, ids. Every invariant passes, fails or is not checkable, with its
    evidence. Exit status 0; with --exit-code 1 when one fails and 3 when one could not be checked.
    """
    from paritrace.reports.formats import OfCheck

    asked = judgement(exit_code=exit_code, allow=allow, exit_zero=exit_zero)
    output_to = Output(path=output, formats=formats, as_json=as_json)
    require_a_place(output_to)
    with progress() as stage, ExitStack() as stack:
        stage(f"checking {run}")
        checked, opened = _checked(run, stack)
        given = OfCheck(checked=checked, run=opened, allowed=allowed_by(asked))
        _write(given, output_to)
        _print(given, output_to)
    tell_of_check(checked, output_to)
    return status_of_check(checked, asked)


def _checked(path: Path, stack: ExitStack) -> "tuple[Checked, Run | None]":
    """The check of what lies at a path, and the run where it is one."""
    if is_trace(path):
        from paritrace.inference.trace_reading import read_trace
        from paritrace.reports.check_trace import checked_trace

        return checked_trace(read_trace(path), path=path), None
    if is_export(path):
        from paritrace.inference.trace_reading import read_export
        from paritrace.reports.check_trace import checked_trace

        return checked_trace(read_export(path), path=path), None
    from paritrace.compare.checks import check as check_run
    from paritrace.runs.reading import open_run

    opened = stack.enter_context(open_run(path))
    return check_run(opened), opened


def _write(given: "OfCheck", output: Output) -> None:
    from paritrace.files import LOCAL
    from paritrace.reports.check_files import write_all, write_one

    if output.path is None:
        return
    name = one_format(output)
    if name is not None:
        write_one(given, output.path, name=name, files=LOCAL)
    else:
        write_all(given, output.path, names=output.files, files=LOCAL)


def _print(given: "OfCheck", output: Output) -> None:
    from paritrace.reports.check_screen import check_screen
    from paritrace.reports.documents import checked_document
    from paritrace.reports.formats import FORMATS, writer_of_check

    if output.as_json or output.files == ("json",):
        write_json_bytes(checked_document(given.checked))
    elif output.path is None and len(output.files) == 1 and output.files != ("text",):
        writer_of_check(FORMATS[output.files[0]])(given, Printed())
    else:
        write_screen(check_screen(given.checked))
        _print_ends(given.checked.ends)


def _print_ends(ends: "Ends | None") -> None:
    """What the run's records say of its end, where it did not end well."""
    from paritrace.cli.output import write_text
    from paritrace.cli.runs_text import ends_text

    if ends is not None:
        records = [one.words for one in ends.records]
        write_text(ends_text(records, num_left_out=ends.num_left_out, death=ends.death))
