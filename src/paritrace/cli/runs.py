"""`paritrace runs`: list, show, verify, pack and remove runs."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from paritrace.cli.options import json_option, scratch_option
from paritrace.cli.output import ExitStatus, write_json, write_text

if TYPE_CHECKING:
    from paritrace.runs.verify import Verification

_PATH = click.Path(path_type=Path)


@click.group()
def runs() -> None:
    """List, show, verify, pack and remove runs."""


@runs.command("ls")
@click.argument("directory", type=_PATH, default=".", metavar="DIR")
@json_option
def list_runs(directory: Path, as_json: bool) -> None:
    """List the runs in and below DIR, directories and archives, with what cannot be read."""
    from paritrace.runs.catalog import catalog

    found = catalog(directory)
    if as_json:
        write_json(found)
        return
    from paritrace.cli.runs_text import catalog_text

    write_text(catalog_text(found))


@runs.command()
@click.argument("run", type=_PATH, metavar="RUN")
@scratch_option
@json_option
def show(run: Path, as_json: bool) -> None:
    """Show a run: sessions and their status, counts, coverage, losses, attachments."""
    from paritrace.runs.reading import open_run
    from paritrace.runs.showing import summarise

    with open_run(run) as opened:
        summary = summarise(opened)
    if as_json:
        write_json(summary)
        return
    from paritrace.cli.runs_text import summary_text

    write_text(summary_text(summary))


@runs.command()
@click.argument("run", type=_PATH, metavar="RUN")
@scratch_option
@json_option
def verify(run: Path, as_json: bool) -> int:
    """Hash and read again everything that RUN names.

    Exit status: 0 intact; 2 something changed or is missing; 3 something could not be checked.
    """
    from paritrace.runs.reading import open_run
    from paritrace.runs.verify import verify as verify_run

    with open_run(run) as opened:
        found = verify_run(opened)
    if as_json:
        write_json(found)
    else:
        from paritrace.cli.runs_text import verification_text

        write_text(verification_text(found))
    return status_of(found)


def status_of(found: "Verification") -> ExitStatus:
    """Return the exit status of a verification (SU-19)."""
    from paritrace.runs.verify import Finding

    match found.verdict:
        case Finding.INTACT:
            return ExitStatus.DONE
        case Finding.CHANGED | Finding.MISSING:
            return ExitStatus.TROUBLE
        case Finding.NOT_CHECKED:
            return ExitStatus.UNDETERMINED


@runs.command()
@click.argument("run", type=_PATH, metavar="RUN")
@click.option("-o", "--output", type=_PATH, required=True, metavar="FILE.tar.zst", help="The archive; must not exist.")
@json_option
def pack(run: Path, output: Path, as_json: bool) -> None:
    """Write RUN into one archive that every command reads; the same run gives the same bytes.

    A run whose ranks are staged, or a store, is put together first.
    """
    from paritrace.runs.pack import pack as pack_run

    packed = pack_run(run, output)
    if as_json:
        write_json(packed)
        return
    write_text(f"run {packed.run_id}: {packed.num_members} files in {packed.path}, {packed.num_bytes:,} bytes")
    for name in packed.left_out:
        write_text(f"left out, not a plain file: {name}")
    for name in packed.referenced:
        write_text(f"not in the archive, it lies outside the run: {name}")


@runs.command("rm")
@click.argument("run", type=_PATH, metavar="RUN")
@json_option
def remove(run: Path, as_json: bool) -> None:
    """Remove the run directory or archive RUN, without asking; refused for anything that is not a run or may run."""
    from paritrace.runs.removal import remove_run

    removed = remove_run(run)
    if as_json:
        write_json(removed)
        return
    write_text(f"removed run {removed.run_id}: {removed.num_files} files, {removed.num_bytes:,} bytes ({removed.path})")
