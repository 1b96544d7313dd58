"""`paritrace align`: apply a person's review of pairs to a kept comparison (CP-14, CP-22)."""

from pathlib import Path

import click

from paritrace import __version__
from paritrace.cli.options import json_option
from paritrace.cli.output import note, write_json_bytes
from paritrace.cli.screens import write_screen
from paritrace.errors import RequestError


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="ARTIFACT [MAP OUT]")
@click.option("--template", is_flag=True, help="Print a map of ARTIFACT to fill in: what it left undetermined.")
@json_option
def align(paths: tuple[Path, ...], template: bool, as_json: bool) -> None:
    """Apply the review in MAP to the kept comparison ARTIFACT, as the fresh comparison OUT.

    ARTIFACT is the folder that `paritrace compare` printed (or a file in it); it is only read. MAP is JSON, bound to it
    by SHA-256: pairs confirmed, replaced, rejected or kept undetermined, and tensors to compare. Every problem of a map
    is listed, and nothing is written unless there is none. OUT must not exist. No run is read.
    """
    if template:
        _print_template(paths)
        return
    from paritrace.files import LOCAL
    from paritrace.reports.aligning import align as apply_map
    from paritrace.reports.aligning import open_artifact

    if len(paths) != 3:
        raise RequestError(f"{len(paths)} paths were given", code="usage", fix="give ARTIFACT MAP OUT")
    artifact, map_path, out = paths
    made_by = f"paritrace {__version__}"
    comparison = apply_map(open_artifact(artifact, files=LOCAL), map_path, out, files=LOCAL, made_by=made_by)
    if as_json:
        from msgspec.structs import replace

        from paritrace.reports.documents import comparison_document

        reports = comparison.reports | {"directory": str(out)}
        write_json_bytes(comparison_document(replace(comparison, reports=reports)))
        return
    from paritrace.reports.first_screen import Kept, first_screen

    write_screen(first_screen(comparison, kept=Kept(directory=str(out), found_without_name=False)))


def _print_template(paths: tuple[Path, ...]) -> None:
    from paritrace.files import LOCAL
    from paritrace.reports.aligning import open_artifact
    from paritrace.reports.alignment_template import template
    from paritrace.reports.calls_table import CallsTable

    if len(paths) != 1:
        raise RequestError(
            "--template takes one ARTIFACT", code="usage", fix="give paritrace align --template ARTIFACT"
        )
    artifact = open_artifact(paths[0], files=LOCAL)
    made = template(CallsTable(artifact.result.calls_path()), artifact_sha256=artifact.sha256)
    if made.left_out:
        note(f"{made.left_out:,} more undetermined calls are not in this template; all stand in calls.parquet")
    write_json_bytes(made.document)
