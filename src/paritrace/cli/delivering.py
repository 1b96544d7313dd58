"""Delivers a comparison: kept, written, printed, told to GitHub (SU-4, SU-7)."""

from pathlib import Path
from typing import TYPE_CHECKING

from paritrace.cli.github import tell_of_comparison
from paritrace.cli.output import ExitStatus, note, write_json_bytes
from paritrace.cli.report_options import Output, one_format
from paritrace.cli.screens import write_screen
from paritrace.errors import ParitraceError

if TYPE_CHECKING:
    from paritrace.compare.result import Comparison
    from paritrace.reports.first_screen import Kept
    from paritrace.reports.keeping import Keeping


def deliver(keeping: "Keeping", output: Output, *, status: ExitStatus) -> None:
    """Write where `output` says, print, and tell GitHub where it listens; `status` is how the command will end."""
    comparison, kept = _written(keeping, output)
    _print(keeping, comparison, output, kept=kept)
    tell_of_comparison(keeping, output, fails=status is ExitStatus.DIFFERENCE)


def _written(keeping: "Keeping", output: Output) -> "tuple[Comparison, Kept | None]":
    from paritrace.files import LOCAL
    from paritrace.reports.keeping import write_one

    if output.path is None:
        return _kept_beside_candidate(keeping)
    name = one_format(output)
    if name is not None:
        write_one(keeping, output.path, name=name, files=LOCAL)
        return keeping.comparison, None
    return _kept_in_folder(keeping, output.path, output)


def _kept_in_folder(keeping: "Keeping", directory: Path, output: Output) -> "tuple[Comparison, Kept | None]":
    from msgspec.structs import replace

    from paritrace.files import LOCAL
    from paritrace.reports.first_screen import Kept
    from paritrace.reports.formats import of_comparisons
    from paritrace.reports.keeping import keep

    wanted = replace(keeping, formats=output.files or of_comparisons())
    return keep(wanted, directory, files=LOCAL), Kept(str(directory), found_without_name=False)


def _kept_beside_candidate(keeping: "Keeping") -> "tuple[Comparison, Kept | None]":
    """Keep the result below the candidate; where that cannot be written, say so and print it all the same."""
    from paritrace.clock import SYSTEM
    from paritrace.files import LOCAL
    from paritrace.reports.first_screen import Kept
    from paritrace.reports.keeping import default_directory, keep, remember
    from paritrace.runs.stored import is_published

    if is_published(Path(keeping.comparison.candidate.path), files=LOCAL):
        note("the result was not kept: nothing is written into a store; name a place with -o")
        return keeping.comparison, None
    directory = _seen_from_here(default_directory(keeping))
    try:
        comparison = keep(keeping, directory, files=LOCAL, found_without_name=True)
        remember(keeping, files=LOCAL, clock=SYSTEM)
    except ParitraceError as error:  # a full disk, a read-only run, something damaged in the way: the answer is due
        note(f"the result was not kept: {error.message}; name another place with -o")
        return keeping.comparison, None
    costs = (keeping.judge_seconds, keeping.narrow_seconds)
    return comparison, Kept(str(directory), True, *costs)


def _seen_from_here(directory: Path) -> Path:
    """The shorter spelling of a folder below the present one: it is read and typed by people."""
    here = Path.cwd()
    return directory.relative_to(here) if directory.is_relative_to(here) else directory


def _print(keeping: "Keeping", comparison: "Comparison", output: Output, *, kept: "Kept | None") -> None:
    """Print one document: JSON, the one text format that was asked for, else the screen."""
    if output.as_json or output.files == ("json",):
        from msgspec.structs import replace

        from paritrace.reports.documents import comparison_document

        reports = comparison.reports if kept is None else comparison.reports | {"directory": kept.directory}
        write_json_bytes(comparison_document(replace(comparison, reports=reports)))
        return
    if output.path is None and len(output.files) == 1 and output.files != ("text",):
        from paritrace.cli.output import Printed
        from paritrace.reports.keeping import write_into

        write_into(keeping, output.files[0], Printed(), kept=kept)
        return
    from paritrace.reports.first_screen import first_screen

    write_screen(first_screen(comparison, kept=kept))
