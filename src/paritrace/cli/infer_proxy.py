"""`paritrace infer proxy`: records what passes between a client and a server (IN-15)."""

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from paritrace.cli.options import json_option
from paritrace.cli.output import note, write_json_line, write_text
from paritrace.errors import HostError

if TYPE_CHECKING:
    from paritrace.inference.proxy.serving import Proxied

NEEDED = ("httpx2", "uvicorn")
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@click.command()
@click.option("--upstream", required=True, metavar="URL", help="The server that requests are passed to.")
@click.option("--run", type=click.Path(path_type=Path), required=True, metavar="RUN", help="The run that records them.")
@click.option("--session", metavar="ID", help="The session they are of [default: that of the artifact].")
@click.option("--host", default="127.0.0.1", show_default=True, metavar="HOST", help="Where the proxy listens.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Port of the proxy [default: a free one]."
)
@click.option("--content", is_flag=True, help="Keep what was asked and answered too: prompts and outputs, 64 KiB each.")
@json_option
def proxy(  # noqa: PLR0913  one parameter per option of the synopsis
    upstream: str, run: Path, session: str | None, host: str, port: int, content: bool, as_json: bool
) -> None:
    """Pass requests to an OpenAI-compatible server and record their times, sizes, ids and usage in RUN.

    Bytes pass as they come, in both directions. Prompts and outputs are not kept unless --content asks for them. Each
    request is in RUN's artifact within a quarter second of its end, whatever becomes of the proxy; one that was under
    way stands there as such. Ctrl-C ends it, with status 0.
    """
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise HostError(
            f"paritrace infer proxy needs {', '.join(missing)}, not installed here",
            code="missing_extra",
            fix="pip install 'paritrace[infer]'",
        )
    from paritrace.inference.proxy.serving import ProxyRequest
    from paritrace.inference.proxy.serving import proxy as serve

    if host not in _LOOPBACK:
        note(f"{host} lets other machines use the upstream through this proxy: it asks nobody who they are")

    def ready(proxied: "Proxied") -> None:
        if as_json:
            write_json_line(proxied)
        else:
            write_text(f"{proxied.url} passes to {upstream}\nCtrl-C ends it")
        sys.stdout.flush()  # whoever reads the address through a pipe waits for it

    request = ProxyRequest(upstream=upstream, run=run, session=session, host=host, port=port, content=content)
    ended = serve(request, ready=ready)
    note(f"{ended.num_events:,} events in {ended.artifact}")
