"""`paritrace record`: runs any command and records how it ended, what it used and what ended it (SC-2, SU-3)."""

from __future__ import annotations

from pathlib import Path

import click

from paritrace.cli.options import A_YEAR_SECONDS, FiniteRange, json_option
from paritrace.cli.own_status import OwnStatusCommand


@click.command(cls=OwnStatusCommand, context_settings={"allow_interspersed_args": False})
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="RUN", required=True, help="The new run directory."
)
@click.option(
    "--timeout",
    type=FiniteRange(min=0, min_open=True, max=A_YEAR_SECONDS),
    metavar="S",
    help="Tell the command and all it started to end after S seconds, and kill what is left 2 s later.",
)
@click.option("--cgroup", is_flag=True, help="Give the command a memory cgroup of its own, where we may make one.")
@click.option(
    "--sample", type=FiniteRange(min=0.1, max=60), metavar="S", help="Look at the process tree every S seconds."
)
@click.option(
    "--exclusive", is_flag=True, help="Your word that nothing else runs in this container until the command has ended."
)
@click.option(
    "--subreaper", is_flag=True, help="Adopt the command's orphans, so that daemons stay in its tree (recorded)."
)
@click.option("--title", default="", help="A title for people.")
@json_option
@click.argument("command", nargs=-1, type=click.UNPROCESSED, required=True, metavar="CMD [ARG...]")
@click.pass_context
def record(  # noqa: PLR0913  one parameter per option of the synopsis; they become one record at once
    ctx: click.Context,
    output: Path,
    timeout: float | None,
    cgroup: bool,
    sample: float | None,
    exclusive: bool,
    subreaper: bool,
    title: str,
    as_json: bool,
    command: tuple[str, ...],
) -> None:
    """Run CMD and record how it ended: exit code or signal, our own timer, out-of-memory kills, resources.

    Its output and exit status are its own; 125 where it could not be started. `--json` prints the record's last line
    behind the command's own output.
    """
    from paritrace.cli.recorded import Asked, status_of_recorded

    asked = Asked(
        command,
        output,
        timeout=timeout,
        cgroup=cgroup,
        sample=sample,
        exclusive=exclusive,
        subreaper=subreaper,
        title=title,
        as_json=as_json,
    )
    ctx.exit(status_of_recorded(asked))
