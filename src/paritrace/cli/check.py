"""`paritrace check`: one run against itself (CP-25)."""

from pathlib import Path

import click

from paritrace.cli.allowances import judgement, judgement_options, status_of_check
from paritrace.cli.options import json_option
from paritrace.cli.output import write_json_bytes
from paritrace.cli.progress import progress
from paritrace.cli.screens import write_screen


@click.command()
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@judgement_options
@json_option
def check(run: Path, exit_code: bool, allow: tuple[str, ...], exit_zero: bool, as_json: bool) -> int:
    """Check RUN against itself: gradients, parameters, batches, finite values, dtypes, recomputation, completeness.

    Every invariant passes, fails or is not checkable, with its evidence. Exit status 0; with --exit-code 1 when one
    fails and 3 when one could not be checked.
    """
    from paritrace.compare.checks import check as check_run
    from paritrace.runs.reading import open_run

    asked = judgement(exit_code=exit_code, allow=allow, exit_zero=exit_zero)
    with progress() as stage, open_run(run) as opened:
        stage(f"checking {run}")
        checked = check_run(opened)
    if as_json:
        from paritrace.reports.documents import checked_document

        write_json_bytes(checked_document(checked))
    else:
        from paritrace.reports.check_screen import check_screen

        write_screen(check_screen(checked))
    return status_of_check(checked, asked)
