"""`paritrace view`: runs and comparisons in the browser, from this machine only (SU-10, SU-11)."""

import os
import sys
import webbrowser
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from paritrace.cli.options import json_option
from paritrace.cli.output import note, write_json, write_text
from paritrace.errors import HostError

if TYPE_CHECKING:
    from paritrace.web.serving import Served

NEEDED = ("fastapi", "uvicorn", "jinja2", "duckdb")


@click.command()
@click.argument("path", type=click.Path(path_type=Path), metavar="PATH")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Port of 127.0.0.1 [default: a free one]."
)
@click.option("--no-open", is_flag=True, help="Print the address and open no browser.")
@click.option("--perfetto", is_flag=True, help="Open the timeline of PATH, a run or comparison, in Perfetto's page.")
@click.option("--allow-control", is_flag=True, help="Let the page of a resident session command it.")
@json_option
def view(path: Path, port: int, no_open: bool, perfetto: bool, allow_control: bool, as_json: bool) -> None:
    """Show PATH in the browser: a run, a comparison, or a folder that holds some.

    The server answers on 127.0.0.1 only, and only to whoever has the token of the printed address. It reads, and
    changes nothing; with --allow-control, the page of a resident session that lives takes commands, too. Ctrl-C ends
    it, with status 0.
    """
    require_web()
    from paritrace.cli.view_timeline import timeline_of, write_trace
    from paritrace.reports.shelf import shelf_of
    from paritrace.web.serving import serve

    shelf = shelf_of(path)  # what cannot be shown is said here, not in a browser
    page = "/"
    if perfetto:
        shown = timeline_of(shelf)
        if not shown.has_page:
            write_trace(shown, as_json=as_json)
            return
        page = shown.page

    def ready(served: "Served") -> None:
        url = served.at(page)
        if as_json:
            write_json({"url": url, "port": served.port, "perfetto_port": served.perfetto_port, "path": str(path)})
        else:
            write_text(f"{url}\nCtrl-C ends it")
        sys.stdout.flush()  # whoever reads the address through a pipe waits for it
        _say_how_to_reach(served)
        if not no_open:
            open_browser(url)

    serve(path, port=port, ready=ready, allow_control=allow_control)


def require_web() -> None:
    """Raises HostError (Refused), `missing_extra`, where a package of the extra `web` is not installed."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise HostError(
            f"paritrace view needs {', '.join(missing)}, not installed here",
            code="missing_extra",
            fix="pip install 'paritrace[web]'",
        )


def open_browser(url: str) -> None:
    """Open the address, unless this is a session without a screen; a browser that does not start is no fault."""
    if os.environ.get("SSH_CONNECTION") or os.environ.get("CI"):
        return
    try:
        webbrowser.open(url)
    except webbrowser.Error as error:
        note(f"no browser was opened: {error}")


def _say_how_to_reach(served: "Served") -> None:
    if os.environ.get("SSH_CONNECTION"):
        ports = [served.port, *([served.perfetto_port] if served.perfetto_port else [])]
        forwarded = " ".join(f"-L {port}:127.0.0.1:{port}" for port in ports)
        note(f"over ssh: ssh {forwarded} HOST on your own machine, then open the address there")
