"""The MCP server as agents start it: the library's own client, over stdio, in a process of its own (AU-12)."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import IO, Any

import anyio
import pytest

from paritrace.mcp.questions import PAGE_ROWS
from paritrace.mcp.telling import ANSWER_CHARACTERS, size_of
from paritrace.mcp.tools import TOOLS
from paritrace.reports.shelf import key_of
from paritrace.testing.grown_results import grow
from tests.mcp.asking import STEPS, ask, places_of, texts
from tests.web.shelves import ODD, write_pair

pytestmark = pytest.mark.slow

LONGEST_SECONDS = 120  # of anything here; a busy machine starts the server in ten


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kept comparison of two runs A and B with odd names."""
    return write_pair(tmp_path_factory.mktemp("pair"), names=("scale", ODD, "fold"), steps=STEPS)


def command(kept: Path) -> list[str]:
    return [sys.executable, "-m", "paritrace", "mcp", str(kept.parents[3])]


def with_client(kept: Path, do: Callable[[Any], Awaitable[None]]) -> None:
    """Run `do(client)` with the library's client connected to a server of its own."""
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters

    async def run() -> None:
        started = StdioServerParameters(command=sys.executable, args=command(kept)[1:], env=dict(os.environ))
        with anyio.fail_after(LONGEST_SECONDS):
            async with Client(started) as client:
                await do(client)

    anyio.run(run)


def test_au12_the_librarys_client_reads_evidence(kept: Path) -> None:
    """All in one connection, as an agent does: tools, a listing, pages to their end, errors, many calls at once."""

    async def look(client: Any) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == set(TOOLS)
        assert all(tool.annotations.read_only_hint and tool.output_schema for tool in tools.values())

        async def ask(tool: str, **arguments: object) -> Any:  # the client holds answers to their schemas
            found = await client.call_tool(tool, arguments)
            assert not found.is_error, found.content
            assert json.loads(found.content[0].text) == found.structured_content
            assert size_of(found.structured_content) <= ANSWER_CHARACTERS
            assert all(text.isprintable() for text in texts(found.structured_content))
            return found.structured_content

        listed = await ask("list_evidence")
        assert listed["counts"]["comparison"] == 1
        key = key_of(kept)
        assert (await ask("summarize_comparison", comparison=key))["counts"]["different"] == 2 * (STEPS - 1)
        seen: list[str] = []
        cursor = ""
        while cursor or not seen:
            page = await ask("list_differences", comparison=key, cursor=cursor)
            assert 0 < len(page["rows"]["items"]) <= PAGE_ROWS
            seen += [row["id"] for row in page["rows"]["items"]]
            cursor = page["next_cursor"]
        assert len(set(seen)) == len(seen) == 2 * (STEPS - 1)
        for tool, arguments, code in (
            ("describe_run", {"run": "/etc/passwd"}, "outside_folders"),
            ("describe_run", {"run": "A", "odd": 1}, "bad_arguments"),
            ("list_differences", {"comparison": key, "cursor": "odd"}, "bad_cursor"),
            ("no_such", {}, "no_such_tool"),
        ):
            refused = await client.call_tool(tool, arguments)
            assert refused.is_error
            assert refused.structured_content["error"]["code"] == code
        answers: list[Any] = []

        async def at_once(tool: str, **arguments: object) -> None:
            answers.append((tool, await ask(tool, **arguments)))

        async with anyio.create_task_group() as calls:
            for _ in range(6):
                calls.start_soon(lambda: at_once("check_run", run="A"))
                calls.start_soon(lambda: at_once("explain", comparison=key, id="F1"))
                calls.start_soon(lambda: at_once("list_evidence"))
        assert len(answers) == 18
        for tool in ("check_run", "explain", "list_evidence"):
            same = [found for name, found in answers if name == tool]
            assert same.count(same[0]) == 6

    with_client(kept, look)


def started(kept: Path, scratch: Path) -> "subprocess.Popen[bytes]":
    """A server that has answered once; its private folders are made in `scratch`."""
    environment = dict(os.environ) | {"TMPDIR": str(scratch)}
    process = subprocess.Popen(command(kept), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}
    say(process.stdin, {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["result"]["serverInfo"]["name"] == "paritrace"
    say(process.stdin, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    return process


def say(to: IO[bytes] | None, message: dict[str, object]) -> None:
    assert to is not None
    to.write(json.dumps(message).encode() + b"\n")
    to.flush()


@pytest.mark.parametrize("way", ["eof", "gone", "terminate"])
def test_au12_the_server_ends_with_its_client(kept: Path, tmp_path: Path, way: str) -> None:
    """At the end of its input, with answers that nobody reads, and by a signal; its private folder goes with it."""
    process = started(kept, tmp_path)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert len(list(tmp_path.iterdir())) == 1
        for number in range(20):
            params = {"name": "verify_run", "arguments": {"run": "A"}}
            say(process.stdin, {"jsonrpc": "2.0", "id": 2 + number, "method": "tools/call", "params": params})
        match way:
            case "eof":
                process.stdin.close()
            case "gone":
                process.stdout.close()
                process.stdin.close()
            case _:
                process.send_signal(signal.SIGTERM)
        status = process.wait(LONGEST_SECONDS)
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()
    assert status == (128 + signal.SIGTERM if way == "terminate" else 0)
    assert list(tmp_path.iterdir()) == []


def test_au12_a_comparison_of_a_large_run_is_paged_within_bounds(tmp_path: Path) -> None:
    """300,000 calls: first pages, one from the middle, one at the end, and rows that are few among many."""
    kept = write_pair(tmp_path, names=("scale", ODD, "fold"), steps=STEPS)
    calls = grow(kept, to=300_000)
    places = places_of(tmp_path)
    asked: dict[str, object] = {"comparison": key_of(kept)}
    first = ask(places, "list_differences", **asked)
    total, about = first["rows"]["total"], first["next_cursor"].partition("-")[0]
    assert total > 80_000
    for offset in (0, calls // 2, calls - 300, calls):
        page = ask(places, "list_differences", **asked, cursor=f"{about}-{offset}")
        assert size_of(page) <= ANSWER_CHARACTERS
        assert page["rows"]["total"] == total
        assert (0 < page["rows"]["shown"] <= PAGE_ROWS) == (offset < calls)
    assert ask(places, "list_differences", **asked, step=30_003)["rows"]["shown"] == 2
    for identity in ("counts.different", "counts.paired", "F1"):
        assert size_of(ask(places, "explain", **asked, id=identity)) <= ANSWER_CHARACTERS
    assert size_of(ask(places, "summarize_comparison", **asked)) <= ANSWER_CHARACTERS


def test_au12_neither_torch_nor_the_web_is_loaded() -> None:
    code = "import sys, paritrace.mcp.server; print([n for n in ('torch', 'fastapi', 'duckdb') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
