"""`paritrace infer import`: what engines, profilers and clients wrote, as events of a run (IN-10 to IN-15)."""

from pathlib import Path

import click

from paritrace.cli.options import json_option
from paritrace.cli.output import write_report

KINDS = ("trace", "log", "metrics", "spans", "client", "stormlog")
_PATH = click.Path(path_type=Path)


@click.command()
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("file", type=_PATH, metavar="FILE")
@click.argument("later", type=_PATH, required=False, metavar="[LATER]")
@click.option("--run", type=_PATH, required=True, metavar="RUN", help="The run whose artifact gets the events.")
@click.option("--session", metavar="ID", help="The session they are of [default: that of the artifact].")
@click.option("--format", "named", metavar="NAME", help="Whose format FILE has [default: as it looks].")
@click.option("--with", "options", multiple=True, metavar="NAME=VALUE", help="An option of that format.")
@json_option
def import_source(  # noqa: PLR0913  one parameter per option of the synopsis
    kind: str,
    file: Path,
    later: Path | None,
    run: Path,
    session: str | None,
    named: str | None,
    options: tuple[str, ...],
    as_json: bool,
) -> None:
    """Append what FILE says to RUN, and register FILE with its digest. Importing it again writes nothing.

    `import metrics` takes two scrapes of a server, the earlier one and LATER: what counters grew by in between.
    What could not be read of a damaged file becomes a loss; what came before it is kept.
    """
    from paritrace.inference.append_report import append_report
    from paritrace.inference.appending import append_import
    from paritrace.inference.artifact import head_of, place_of
    from paritrace.inference.importers.choosing import checked_options, reader_of
    from paritrace.inference.importing import Asked, Scope, SourceKind
    from paritrace.reports.inference.screens import append_screen

    head = head_of(place_of(run)).context.facts
    of_session = session or head.session_id
    reader = reader_of(SourceKind(kind), file, named=named)
    asked = Asked(file, Scope(head.run_id, of_session), checked_options(reader, _named(options) | _later(kind, later)))
    imports = append_import(
        run, reader.open(asked), component=f"import:{reader.name}", run_id=head.run_id, session=of_session
    )
    report = append_report(run, imports.committed, account=imports.account)
    write_report(report, append_screen, as_json=as_json)


def _later(kind: str, later: Path | None) -> dict[str, str]:
    if later is None:
        return {}
    if kind != "metrics":
        raise click.UsageError(f"import {kind} takes one FILE; only metrics are two")
    return {"after": str(later)}


def _named(options: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for option in options:
        name, equals, value = option.partition("=")
        if not equals or not name or name in found:
            raise click.UsageError(f"--with {option!r} is not NAME=VALUE, or says NAME a second time")
        found[name] = value
    return found
