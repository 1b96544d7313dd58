"""Serving the tools over stdin and stdout by the MCP library, until the client goes away (AU-12)."""

import json
import os
import signal
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from paritrace import __version__
from paritrace.mcp.places import Places
from paritrace.mcp.tools import INSTRUCTIONS, TOOLS, answer, schema_of
from paritrace.runs.scratch import Scratch

AT_ONCE = 4  # calls that are worked on at a time; the others wait for their turn
READ_ONLY = types.ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)


def serve(folders: Sequence[Path], /) -> None:
    """Answers until stdin ends or the client is gone. A signal ends it at once: there is nothing to lose."""
    scratch = Scratch(None)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, partial(_leave, scratch))
    try:
        anyio.run(_serve, Places(folders, scratch=scratch.folder))
    except* (BrokenPipeError, anyio.BrokenResourceError):  # nobody reads our answers any more
        pass
    finally:
        scratch.remove()


def server_of(places: Places, /) -> Server[Any]:
    """Returns the server over these places, not yet connected to anything."""
    turns = anyio.CapacityLimiter(AT_ONCE)

    async def list_tools(_context: Any, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=_tools())

    async def call_tool(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        work = partial(answer, places, params.name, params.arguments or {})
        found = await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=turns)
        text = json.dumps(found.document, ensure_ascii=False, separators=(",", ":"))
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=text)],
            structured_content=found.document,
            is_error=found.is_error,
        )

    return Server(
        "paritrace",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def _serve(places: Places) -> None:
    server = server_of(places)
    async with stdio_server() as (received, sent):
        await server.run(received, sent, server.create_initialization_options())


def _tools() -> list[types.Tool]:
    return [
        types.Tool(
            name=name,
            description=tool.description,
            input_schema=schema_of(tool.asks),
            output_schema=schema_of(tool.answers),
            annotations=READ_ONLY,
        )
        for name, tool in TOOLS.items()
    ]


def _leave(scratch: Scratch, number: int, _frame: FrameType | None) -> None:
    """A thread that waits for stdin cannot be woken: the process ends without it."""
    scratch.remove()
    os._exit(128 + number)
