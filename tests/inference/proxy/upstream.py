"""A small server that speaks OpenAI's API, and running it or a proxy in a thread or as a process."""

import asyncio
import gzip
import json
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Generator, MutableMapping
from contextlib import contextmanager
from typing import Any

import uvicorn

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ENDS_WITHIN_SECONDS = 20.0
ID, MODEL = "chatcmpl-served", "tiny"
USAGE = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
WHOLE = {
    "id": "chatcmpl-whole",
    "object": "chat.completion",
    "created": 1,
    "model": MODEL,
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "a b"}}],
    "usage": USAGE,
}


async def _body(receive: Receive) -> bytes:
    found, more = b"", True
    while more:
        message = await receive()
        found += message.get("body", b"")
        more = message.get("more_body", False)
    return found


def event(choices: list[dict[str, object]], **more: object) -> bytes:
    """One event of a stream."""
    whole = {"id": ID, "object": "chat.completion.chunk", "created": 1, "model": MODEL, "choices": choices, **more}
    return b"data: " + json.dumps(whole).encode() + b"\n\n"


def chunk(delta: dict[str, object], finish: str | None = None) -> bytes:
    """One chunk of one choice."""
    return event([{"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}])


BEGINNING = [chunk({"role": "assistant", "content": ""}), *(chunk({"content": f"{n} "}) for n in range(3))]
ENDING = [chunk({}, "stop"), event([], usage=USAGE), b"data: [DONE]\n\n"]


class Served:
    """The application. `gate`: streams of /gated wait for it between their chunks."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.seen: list[dict[str, Any]] = []

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        body = await _body(receive)
        self.seen.append({"query": scope["query_string"], "headers": scope["headers"], "body": body})
        path = scope["path"].removeprefix("/v1")
        if path.startswith("/status/"):
            await self._plain(send, {"error": {"type": "odd", "message": "x"}}, status=int(path.split("/")[2]))
        elif path == "/echo":
            await self._plain(send, {"length": len(body)})
        elif path == "/compressed":
            await self._bytes(send, gzip.compress(b"".join([*BEGINNING, *ENDING])), at_once=7, encoding=b"gzip")
        elif path == "/endless-line":
            await self._bytes(send, b"x" * (6 << 20), at_once=1 << 16, encoding=b"identity")
        elif path in ("/chat/completions", "/gated", "/cut"):
            await self._chat(path, body, send)
        else:
            await self._plain(send, {"error": {"type": "not_found"}}, status=404)

    async def _plain(self, send: Send, value: object, *, status: int = 200) -> None:
        headers = [(b"content-type", b"application/json"), (b"x-served", b"1"), (b"x-served", b"2")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(value).encode()})

    async def _bytes(self, send: Send, data: bytes, *, at_once: int, encoding: bytes) -> None:
        headers = [(b"content-type", b"text/event-stream"), (b"content-encoding", encoding)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for place in range(0, len(data), at_once):
            await send({"type": "http.response.body", "body": data[place : place + at_once], "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def _chat(self, path: str, body: bytes, send: Send) -> None:
        if not json.loads(body or b"{}").get("stream"):
            await self._plain(send, WHOLE)
            return
        headers = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"x-request-id", b"served-1")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for part in [*BEGINNING, *ENDING]:
            await send({"type": "http.response.body", "body": part, "more_body": True})
            if path == "/cut" and part == BEGINNING[2]:
                raise RuntimeError("this answer is never whole")
            if path == "/gated" and part == BEGINNING[1]:
                await asyncio.to_thread(self.gate.wait, ENDS_WITHIN_SECONDS)
        await send({"type": "http.response.body", "body": b""})


@contextmanager
def listening() -> Generator[socket.socket]:
    """A socket on a free port of this machine."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        bound.listen(64)
        yield bound


@contextmanager
def running(app: Any) -> Generator[str]:
    """Serves an application in a thread while the block runs, and gives its address."""
    with listening() as bound:
        config = uvicorn.Config(app, log_config=None, log_level="critical", ws="none", timeout_graceful_shutdown=5)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([bound],), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{bound.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(ENDS_WITHIN_SECONDS)


def main() -> None:
    """Serves as a process of its own; the first line of stdout is the address."""
    with listening() as bound:
        sys.stdout.write(f"http://127.0.0.1:{bound.getsockname()[1]}\n")
        sys.stdout.flush()
        uvicorn.Server(uvicorn.Config(Served(), log_config=None, log_level="critical", lifespan="off")).run([bound])


if __name__ == "__main__":
    main()
