"""`paritrace infer`: inference evidence of a run: making it, adding to it, recovering it (IN-5, IN-6)."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from paritrace.cli.infer_compare import compare
from paritrace.cli.infer_import import import_source
from paritrace.cli.infer_proxy import proxy
from paritrace.cli.infer_reading import account, link, show
from paritrace.cli.infer_requests import requests
from paritrace.cli.options import FiniteRange, json_option
from paritrace.cli.output import write_report

if TYPE_CHECKING:
    from paritrace.inference.enveloping import SessionFacts

_PATH = click.Path(path_type=Path)
_SESSION = "inference"


@click.group()
def infer() -> None:
    """Requests, scheduler iterations and device work of an inference run, and what was lost of them."""


infer.add_command(import_source, "import")
infer.add_command(link, "link")
infer.add_command(account, "account")
infer.add_command(show, "show")
infer.add_command(compare, "compare")
infer.add_command(proxy, "proxy")
infer.add_command(requests, "requests")


@infer.command()
@click.argument("run", type=_PATH, metavar="RUN")
@click.option("--run-id", metavar="ID", help="Id of a new run [default: the recorded one, or a new id].")
@click.option("--session", default=_SESSION, show_default=True, metavar="ID", help="The session that begins it.")
@json_option
def init(run: Path, run_id: str | None, session: str, as_json: bool) -> None:
    """Make the artifact inference.jsonl of RUN, a run directory that is there or a new one."""
    from paritrace.inference.append_report import append_report
    from paritrace.inference.appending import init as make
    from paritrace.reports.inference.screens import append_screen

    report = append_report(run, make(run, run_id=run_id, session=_facts(session)))
    write_report(report, append_screen, as_json=as_json)


@infer.command()
@click.argument("run", type=_PATH, metavar="RUN")
@click.option(
    "--events", type=_PATH, metavar="FILE", help="Events of an engine, one a line, as inference.jsonl has them."
)
@click.option("--trace-events", type=_PATH, metavar="FILE", help="Events of a trace collector, in the same form.")
@click.option("--session", metavar="ID", help="The session they are of [default: that of the artifact].")
@click.option("--trace", "traces", type=_PATH, multiple=True, metavar="FILE", help="Register a raw trace with them.")
@click.option("--keep-going", is_flag=True, help="Append what one source has where the other one fails.")
@click.option("--deadline", type=FiniteRange(min=0.001), default=600.0, show_default=True, metavar="SECONDS")
@json_option
def append(  # noqa: PLR0913  one parameter per option of the synopsis
    run: Path,
    events: Path | None,
    trace_events: Path | None,
    session: str | None,
    traces: tuple[Path, ...],
    keep_going: bool,
    deadline: float,
    as_json: bool,
) -> None:
    """Append events to RUN; all of them or none. What is there already is not written again."""
    from paritrace.inference.append_report import append_report
    from paritrace.inference.appending import AppendOptions
    from paritrace.inference.appending import append as append_events
    from paritrace.inference.artifact import head_of, place_of
    from paritrace.inference.event_files import FileOfEvents
    from paritrace.reports.inference.screens import append_screen

    head = head_of(place_of(run)).context.facts
    committed = append_events(
        run,
        run_id=head.run_id,
        session=session or head.session_id,
        engine_adapter=None if events is None else FileOfEvents(events),
        trace_collector=None if trace_events is None else FileOfEvents(trace_events, traces=traces),
        options=AppendOptions(keep_going=keep_going, deadline_seconds=deadline),
    )
    report = append_report(run, committed)
    write_report(report, append_screen, as_json=as_json)


@infer.command()
@click.argument("run", type=_PATH, metavar="RUN")
@json_option
def recover(run: Path, as_json: bool) -> None:
    """Keep the torn bytes of RUN's artifact as attachments, note the loss, and let it be read again."""
    from paritrace.inference.recovering import recover as recover_artifact
    from paritrace.reports.inference.screens import recover_screen

    report = recover_artifact(run)
    write_report(report, recover_screen, as_json=as_json)


def _facts(session: str) -> "SessionFacts":
    from paritrace.inference.enveloping import SessionFacts

    return SessionFacts(session_id=session)
