"""`paritrace mcp`: read-only tools over runs and comparisons for coding agents, by MCP over stdio (AU-12)."""

from importlib.util import find_spec
from pathlib import Path

import click

from paritrace.errors import HostError


@click.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="DIR...")
def mcp(folders: tuple[Path, ...]) -> None:
    """Answer a coding agent's questions about the runs and comparisons in and below each DIR.

    Speaks MCP on stdin and stdout and is started by the agent's program. It reads, runs nothing, and reaches nothing
    outside of the folders. It ends, with status 0, when its client goes away.
    """
    if find_spec("mcp") is None:
        raise HostError(
            "paritrace mcp needs mcp, not installed here", code="missing_extra", fix="pip install 'paritrace[mcp]'"
        )
    for folder in folders:
        if not folder.is_dir():
            raise HostError(f"{folder} is not a folder", code="not_a_folder", fix="name folders that hold runs")
    from paritrace.mcp.server import serve

    serve(folders)
