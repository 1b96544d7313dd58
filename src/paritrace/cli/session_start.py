"""`paritrace session start`: the coordinator in the foreground, or with `--detach` behind the terminal (SE-2)."""

import shlex
from pathlib import Path
from typing import Any

import click

from paritrace.cli.options import json_option
from paritrace.cli.output import ExitStatus, note, write_json, write_text
from paritrace.cli.session_options import directory_argument, object_of, values_of
from paritrace.errors import RequestError


@click.command()
@directory_argument
@click.argument("workload", required=False, metavar="[MODULE:CLASS]")
@click.option("--ranks", type=click.IntRange(1, 100_000), default=1, show_default=True, help="How many ranks.")
@click.option(
    "--engine",
    type=click.Choice(["local", "attach", "ray"]),
    default="local",
    show_default=True,
    help="local: processes of this machine; attach: ranks that a launcher starts dial in; ray: actors of a cluster.",
)
@click.option("--arguments", metavar="JSON", help="What the class is made with; or @FILE.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A value of the configuration.")
@click.option("--from", "start_from", metavar="CHECKPOINT", help="Begin at a checkpoint of the session, or `latest`.")
@click.option(
    "--autosave-every", type=click.IntRange(0), default=1000, show_default=True, metavar="N", help="Steps; 0: never."
)
@click.option("--bound", "bounds", multiple=True, metavar="NAME=S", help="Set a wait; `session status --bounds` lists.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Port of 127.0.0.1 [default: free]."
)
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default="",
    help="With attach: the address of this machine where ranks of other machines dial in [default: 127.0.0.1, any"
    " free port]. The line is not encrypted.",
)
@click.option("--detach", is_flag=True, help="Give the terminal back once all ranks are ready; with attach at once.")
@json_option
def start(directory: Path, workload: str | None, detach: bool, as_json: bool, **given: Any) -> int:
    """Start a session in DIR: a coordinator, and ranks that build MODULE:CLASS and wait.

    With --engine attach there is no MODULE:CLASS: ranks of a launcher dial in, whose loop is over `paritrace.steps` and
    whose environment has PARITRACE_SESSION=DIR.

    DIR is a new directory, or that of an earlier session, whose journal goes on. Ends when the session is closed; the
    first Ctrl-C closes it, the second one kills its ranks.

    Exit status: 0 closed, or with --detach ready; 2 not started, or with --detach the ranks did not become ready.
    """
    from paritrace.session.coordinator.opening_request import Opening

    if (workload is None) != (given["engine"] == "attach"):
        raise RequestError(
            "MODULE:CLASS belongs to every engine but attach, whose ranks bring their own loop",
            code="usage",
            fix="name the workload as package.module:Class, or leave it out with --engine attach",
        )
    opening = Opening(
        directory=str(directory.absolute()),
        workload=workload or "",
        arguments=object_of(given["arguments"], what="--arguments") or {},
        ranks=given["ranks"],
        engine=given["engine"],
        bounds={name: _seconds(value) for name, value in values_of(given["bounds"]).items()},
        config=values_of(given["settings"]),
        start_from=given["start_from"],
        autosave_every=given["autosave_every"],
        port=given["port"],
        listen=given["listen"],
    )
    if detach:
        return _detached(opening, as_json=as_json)
    from paritrace.session.coordinator.announcing import Announcer
    from paritrace.session.coordinator.serving import Begun, serve

    def begun(found: Begun) -> None:
        for one in found.in_flight:
            note(f"in flight when the last coordinator ended: {one.kind.value} {one.id} ({one.last})")
        if as_json:
            write_json(found.record)
        else:
            write_text(f"session {found.record.session_id} at {found.record.url}; paritrace session status {directory}")
        import sys

        sys.stdout.flush()

    serve(opening, begun=begun, announcer=Announcer(note))
    return ExitStatus.DONE


def _detached(opening: Any, *, as_json: bool) -> int:
    from paritrace.session.coordinator.detaching import start_detached
    from paritrace.session.states import RankState
    from paritrace.session.words import progress_words, trouble_words

    status = start_detached(opening, tell=note)
    failed = status.state is RankState.ERROR
    if as_json:
        write_json(status)
    else:
        write_text(trouble_words(status) if failed else f"session {status.session_id}: {progress_words(status)}")
    if failed:
        quoted = shlex.quote(opening.directory)
        note(f"it holds {quoted}: mend the workload, then `paritrace session rebuild {quoted}`, or `… close {quoted}`")
    return ExitStatus.TROUBLE if failed else ExitStatus.DONE


def _seconds(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else -1.0
