"""`paritrace infer requests`: which request of a client is which of a server (IN-14)."""

from pathlib import Path

import click

from paritrace.cli.options import json_option
from paritrace.cli.output import write_report


@click.command()
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@json_option
def requests(run: Path, as_json: bool) -> None:
    """Show the requests of RUN by the source that saw them, and which of two sources are one: by id, never by time."""
    from paritrace.inference.requests_report import requests_of
    from paritrace.reports.inference.requests_screen import requests_screen

    report = requests_of(run)
    write_report(report, requests_screen, as_json=as_json)
