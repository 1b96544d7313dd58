"""Forwards HTTP to one upstream, byte by byte as it comes, and tells an exchange what passed (IN-15)."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import aclosing
from typing import Any

import httpx2
from msgspec import Struct

from paritrace.clock import SYSTEM, Clock
from paritrace.inference.importers.client_sse import HEADERS, MOST_EVENT_BYTES
from paritrace.inference.proxy.exchange import LATE_HEADER, Broken, Exchange, Recorder
from paritrace.inference.proxy.recording import Writer
from paritrace.inference.records import Observation

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
_OURS = frozenset({LATE_HEADER.encode()})
RawHeaders = list[tuple[bytes, bytes]]

CONNECTED_WITHIN_SECONDS = 10.0  # an upstream of the same data centre answers at once or not at all
SILENT_SECONDS = (
    3600.0  # a long prompt behind a full queue takes minutes before its first token; clients give up before
)
MOST_CONNECTIONS = 2_000
MOST_BYTES_BEHIND = 1 << 20  # of a stream that wait to be looked at; beyond it the stream passes on unobserved
_HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding "
    b"upgrade host".split()
)
_STREAM = "text/event-stream"


class Upstream(Struct, frozen=True):
    """Where requests go: a scheme, a host, a port and a path before theirs."""

    url: str

    def at(self, raw_path: bytes, query: bytes) -> str:
        """The address of a path as the client sent it, nothing decoded."""
        path = raw_path.decode("ascii", "surrogateescape")
        return self.url.rstrip("/") + path + (f"?{query.decode('latin-1')}" if query else "")


class Forwarding:
    """The application: ASGI, HTTP only."""

    def __init__(
        self,
        upstream: Upstream,
        *,
        recorder: Recorder,
        writer: Writer,
        ready: Callable[[], None] = lambda: None,
        clock: Clock = SYSTEM,
    ) -> None:
        self._upstream = upstream
        self._ready = ready
        self._recorder = recorder
        self._writer = writer
        self._clock = clock
        self._number = 0
        self._client: httpx2.AsyncClient | None = None

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        match scope["type"]:
            case "lifespan":
                await self._live(receive, send)
            case "http":
                await self._exchange(scope, receive, send)
            case _:  # a websocket: closed before it opens
                await send({"type": "websocket.close", "code": 1003})

    async def _live(self, receive: Receive, send: Send) -> None:
        limits = httpx2.Limits(max_connections=MOST_CONNECTIONS, max_keepalive_connections=100)
        timeout = httpx2.Timeout(SILENT_SECONDS, connect=CONNECTED_WITHIN_SECONDS)
        async with httpx2.AsyncClient(trust_env=False, limits=limits, timeout=timeout) as self._client:
            await receive()
            await send({"type": "lifespan.startup.complete"})
            self._ready()
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    async def _exchange(self, scope: Message, receive: Receive, send: Send) -> None:
        self._number += 1
        exchange = Exchange(
            self._number, method=scope["method"], path=scope["path"], began_ns=self._clock.monotonic_ns()
        )
        exchange.took(_by_name(scope["headers"]))
        exchange.scheduled(_by_name(scope["headers"]))
        self._record(self._recorder.started, exchange)
        incoming = _Incoming(receive, exchange, has_body=_has_body(scope["headers"]))
        try:
            await self._forwarded(scope, incoming, send, exchange)
        except asyncio.CancelledError:
            exchange.broken = exchange.broken or Broken.PROXY_ENDED
            raise
        finally:
            if exchange.ended_ns is None:
                exchange.ended_ns = self._clock.monotonic_ns()
            self._record(self._recorder.ended, exchange)

    def _record(self, told: Callable[[Exchange], Observation], exchange: Exchange) -> None:
        """Hands what was seen to the writer; what cannot be told is counted, and the exchange goes on (P6)."""
        try:
            event = told(exchange)
        except Exception as error:  # noqa: BLE001  a request is never spoiled by what is recorded of it
            self._writer.lost(type(error).__name__)
        else:
            self._writer.take(event)

    async def _forwarded(self, scope: Message, incoming: "_Incoming", send: Send, exchange: Exchange) -> None:
        """Sends the request on and passes the answer back, unless the client leaves before."""
        passing = asyncio.ensure_future(self._passed(scope, incoming, send, exchange))
        leaving = asyncio.ensure_future(incoming.left())
        try:
            await asyncio.wait((passing, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not passing.done() or (incoming.gone and exchange.http_status is None):
                exchange.broken = Broken.CLIENT_LEFT
        finally:
            for task in (passing, leaving):
                task.cancel()
            done = await asyncio.gather(passing, leaving, return_exceptions=True)
        if isinstance(done[0], Exception) and exchange.broken is not Broken.CLIENT_LEFT:
            raise done[0]

    async def _passed(self, scope: Message, incoming: "_Incoming", send: Send, exchange: Exchange) -> None:
        assert self._client is not None
        response = await self._asked(self._client, scope, incoming, exchange)
        if response is None:
            await _told(send, exchange)
            return
        try:
            await self._answered(response, send, exchange)
        finally:
            await response.aclose()

    async def _asked(
        self, client: httpx2.AsyncClient, scope: Message, incoming: "_Incoming", exchange: Exchange
    ) -> httpx2.Response | None:
        """The upstream's answer once its headers are there; None after saying in the exchange why there is none."""
        try:
            request = httpx2.Request(
                scope["method"],
                self._upstream.at(scope.get("raw_path") or scope["path"].encode(), scope["query_string"]),
                headers=_forwarded_headers(scope["headers"]),
                content=incoming.body() if _has_body(scope["headers"]) else None,
            )
            exchange.sent_ns = self._clock.monotonic_ns()
            return await client.send(request, stream=True, follow_redirects=False)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout):
            exchange.broken = Broken.UNREACHABLE
        except httpx2.ReadTimeout:
            exchange.broken = Broken.TIMED_OUT
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol, httpx2.LocalProtocolError, UnicodeError):
            exchange.broken = Broken.BAD_REQUEST
        except httpx2.TransportError:
            exchange.broken = Broken.NO_ANSWER
        return None

    async def _answered(self, response: httpx2.Response, send: Send, exchange: Exchange) -> None:
        exchange.http_status = response.status_code
        exchange.took(response.headers)
        exchange.is_stream = response.headers.get("content-type", "").split(";")[0].strip().lower() == _STREAM
        headers = [(name, value) for name, value in response.headers.raw if name.lower() not in _HOP_BY_HOP]
        await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
        observing = _Observing(exchange, response) if exchange.is_stream else None
        try:
            async with aclosing(response.aiter_raw()) as chunks:
                async for chunk in chunks:
                    at_ns = self._clock.monotonic_ns()
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
                    self._saw(exchange, chunk, at_ns, observing)
        except httpx2.TimeoutException:
            exchange.broken = Broken.TIMED_OUT
        except httpx2.TransportError:
            exchange.broken = Broken.CUT
        finally:
            exchange.ended_ns = self._clock.monotonic_ns()
            if observing is not None:
                await observing.close()
        if exchange.broken is None:
            await send({"type": "http.response.body", "body": b""})
        else:
            raise AnswerCutError  # the server cuts the client's connection too: half an answer is not made a whole one

    def _saw(self, exchange: Exchange, chunk: bytes, at_ns: int, observing: "_Observing | None") -> None:
        if exchange.first_byte_ns is None:
            exchange.first_byte_ns = at_ns
        exchange.answered.take(chunk)
        if observing is not None:
            observing.take(chunk, at_ns)


class AnswerCutError(Exception):
    """The upstream ended inside its answer."""


class _Incoming:
    """The client's side: its body as it comes, and the moment it leaves."""

    def __init__(self, receive: Receive, exchange: Exchange, *, has_body: bool) -> None:
        self._receive = receive
        self._exchange = exchange
        self.gone = False
        self._read = asyncio.Event()  # nobody reads the body any more
        if not has_body:
            self._read.set()

    async def body(self) -> AsyncIterator[bytes]:
        """Yields the body; ends early where the client leaves."""
        more = True
        try:
            while more:
                message = await self._receive()
                self.gone = message["type"] == "http.disconnect"
                more = bool(message.get("more_body", False)) and not self.gone
                chunk: bytes = message.get("body", b"")
                self._exchange.asked.take(chunk)
                if not more:
                    self._read.set()
                if chunk:
                    yield chunk
        finally:
            self._read.set()

    async def left(self) -> None:
        """Returns once the client has left; it reads what comes only after the body was read."""
        await self._read.wait()
        while not self.gone:
            self.gone = (await self._receive())["type"] == "http.disconnect"


class _Observing:
    """Reads the events of a stream behind the traffic; what it cannot keep up with passes on unobserved."""

    def __init__(self, exchange: Exchange, response: httpx2.Response) -> None:
        self._exchange = exchange
        self._waiting: asyncio.Queue[tuple[bytes, int] | None] = asyncio.Queue()
        self._num_bytes_behind = 0
        self._at_ns = 0
        encoding = {name: value for name, value in response.headers.items() if name.lower() == "content-encoding"}
        self._body = httpx2.Response(
            200,
            headers=HEADERS | encoding,
            content=self._chunks(),
            request=httpx2.Request("GET", "http://observed.invalid"),
        )
        self._task = asyncio.ensure_future(self._read())

    def take(self, chunk: bytes, at_ns: int) -> None:
        if self._exchange.observed and self._num_bytes_behind + len(chunk) <= MOST_BYTES_BEHIND:
            self._num_bytes_behind += len(chunk)
            self._waiting.put_nowait((chunk, at_ns))
        else:
            self._exchange.observed = False

    async def close(self) -> None:
        """Reads what waits, and ends; whatever became of looking at a stream, the stream itself has passed."""
        self._waiting.put_nowait(None)
        await asyncio.wait({self._task})
        if self._task.cancelled() or self._task.exception() is not None:
            self._exchange.observed = False

    async def _chunks(self) -> AsyncIterator[bytes]:
        while (taken := await self._waiting.get()) is not None:
            chunk, self._at_ns = taken
            self._num_bytes_behind -= len(chunk)
            yield chunk

    async def _read(self) -> None:
        try:
            async for event in httpx2.EventSource(self._body, max_event_size=MOST_EVENT_BYTES):
                self._exchange.event(event.data, at_ns=self._at_ns)
        except (httpx2.SSEError, httpx2.DecodingError):
            self._exchange.observed = False


def _has_body(headers: RawHeaders) -> bool:
    names = {name.lower() for name, _ in headers}
    return b"content-length" in names or b"transfer-encoding" in names


def _forwarded_headers(headers: RawHeaders) -> RawHeaders:
    """The client's headers without those of its own connection, those it names as such, and what is for us alone."""
    named = {
        one.strip().lower() for name, value in headers if name.lower() == b"connection" for one in value.split(b",")
    }
    return [(name, value) for name, value in headers if name.lower() not in _HOP_BY_HOP | named | _OURS]


def _by_name(headers: RawHeaders) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}


async def _told(send: Send, exchange: Exchange) -> None:
    """Answers in the upstream's place where it gave none, in the form of OpenAI's errors."""
    assert exchange.broken is not None
    status = 504 if exchange.broken is Broken.TIMED_OUT else 400 if exchange.broken is Broken.BAD_REQUEST else 502
    message = f"the recording proxy got no answer of its upstream: {exchange.broken.value}"
    body = json.dumps({"error": {"message": message, "type": exchange.broken.value, "code": status}}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
