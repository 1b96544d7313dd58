"""Runs the recording proxy until it is told to end (IN-15)."""

import os
import signal
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from urllib.parse import urlsplit

import uvicorn
from msgspec import Struct

from paritrace.clock import SYSTEM, Clock
from paritrace.errors import EvidenceError, HostError, Outcome, ParitraceError, RequestError
from paritrace.evidence.clocks import monotonic_domain, wall_domain
from paritrace.evidence.ids import ProcessIdentity
from paritrace.files import LOCAL
from paritrace.inference.appending import append_import, init
from paritrace.inference.artifact import ARTIFACT_NAME, Place, head_of, place_of
from paritrace.inference.context import ClockKind, CollectionMode, Context, ContextFacts, Provenance
from paritrace.inference.enveloping import SessionFacts
from paritrace.inference.importing import Events, Imported
from paritrace.inference.proxy.exchange import Recorder
from paritrace.inference.proxy.forwarding import Forwarding, Upstream
from paritrace.inference.proxy.recording import ACCOUNT, COMPONENT, Writer
from paritrace.inference.records import ClockAlignment
from paritrace.process.identity import own_identity

LOOPBACK = "127.0.0.1"
LISTENING = 1_024
ENDS_WITHIN_SECONDS = 5  # answers under way are finished; one that takes longer is cut off, and recorded as such
SOURCE = "paritrace infer proxy"


class ProxyRequest(Struct, frozen=True, kw_only=True):
    """What a proxy is started for."""

    upstream: str
    run: Path
    session: str | None = None
    host: str = LOOPBACK
    port: int = 0
    content: bool = False


class Proxied(Struct, frozen=True):
    """A proxy that answers, or has answered."""

    url: str
    port: int
    artifact: str
    num_events: int = 0


def proxy(request: ProxyRequest, *, ready: Callable[[Proxied], None], clock: Clock = SYSTEM) -> Proxied:
    """Forward and record until SIGINT or SIGTERM; `ready` is called once the proxy takes connections.

    The run's artifact is made where there is none. What has ended is in the artifact within about a quarter second.

    Raises:
        RequestError: Refused, `bad_upstream`.
        HostError: Refused, `port_taken`.
        EvidenceError: Refused: what `append_import` refuses; Failed, `proxy_unwritten`.
    """
    upstream = upstream_of(request.upstream)
    place = _artifact(request.run, request.session)
    head = head_of(place).context.facts
    session = request.session or head.session_id
    identity = own_identity()
    began_ns = clock.monotonic_ns()
    producer = f"proxy:{identity.host}:{identity.pid}:{began_ns}"
    context = _context(head.run_id, session, producer, identity)

    def append(imported: Imported) -> object:
        return append_import(place.path, imported, component=COMPONENT, run_id=head.run_id, session=session)

    with bound(request.host, request.port) as listening:
        append(Imported((), _aligned(context, identity, clock)))  # what cannot be written is said before it is needed
        port = int(listening.getsockname()[1])
        proxied = Proxied(f"http://{_in_url(request.host)}:{port}", port, str(place.path))
        writer = Writer(append, context=context, producer=producer)
        recorder = Recorder(
            context=context,
            producer=producer,
            upstream=f"upstream:{urlsplit(upstream.url).netloc}",
            content=request.content,
        )
        _serve(
            Forwarding(upstream, recorder=recorder, writer=writer, ready=lambda: ready(proxied), clock=clock),
            listening,
            writer,
        )
    if writer.num_unwritten:
        raise _unwritten(writer, place)
    return Proxied(proxied.url, port, proxied.artifact, writer.num_written)


def _serve(app: Forwarding, listening: socket.socket, writer: Writer) -> None:
    config = uvicorn.Config(
        app,
        log_config=None,
        log_level="critical",
        access_log=False,
        lifespan="on",
        ws="none",
        http="h11",
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=ENDS_WITHIN_SECONDS,
    )
    writer.start()
    try:
        with _ended_by_signals():
            uvicorn.Server(config).run(sockets=[listening])
    finally:
        writer.close()


@contextmanager
def _ended_by_signals() -> Generator[None]:
    """The server raises anew the signal that ended it: here that ends nothing before everything is written."""

    def nothing(_number: int, _frame: FrameType | None) -> None:
        pass

    before = {number: signal.signal(number, nothing) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def upstream_of(url: str) -> Upstream:
    """Returns where requests go.

    Raises:
        RequestError: Refused, `bad_upstream`: no http or https address, or one with a name and a password in it.
    """
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.username is None
        good = good and not parts.query and not parts.fragment and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise RequestError(
            f"{url.rpartition('@')[2][:200]!r} is no upstream",
            code="bad_upstream",
            fix="give http://HOST:PORT or https://HOST, with a path at most; credentials stay in the client's headers",
        )
    return Upstream(url)


@contextmanager
def bound(host: str, port: int) -> Generator[socket.socket]:
    """Listen while the block runs; port 0 is any free one.

    Raises:
        HostError: Refused, `port_taken`.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, port))
            listening.listen(LISTENING)
        except OSError as error:
            raise HostError(
                f"{host}:{port} cannot be listened on: {os.strerror(error.errno or 0)}",
                code="port_taken",
                fix="leave out --port, which takes a free one, or name another",
            ) from error
        yield listening


def _artifact(run: Path, session: str | None) -> Place:
    """The artifact of a run directory, made where there is none; one that is named as a file has to be there."""
    if not LOCAL.exists(run) or (run.is_dir() and not LOCAL.exists(run / ARTIFACT_NAME)):
        init(run, session=None if session is None else SessionFacts(session_id=session))
    return place_of(run)


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _context(run_id: str, session: str, producer: str, identity: ProcessIdentity) -> Context:
    return Context(
        ContextFacts(
            run_id=run_id,
            session_id=session,
            producer_id=producer,
            source=SOURCE,
            clock_domain=monotonic_domain(identity).name,
            clock_kind=ClockKind.MONOTONIC,
            collection_mode=CollectionMode.PASSIVE,
            provenance=Provenance.OBSERVED,
            host=identity.host,
            pid=identity.pid,
        )
    )


def _aligned(context: Context, identity: ProcessIdentity, clock: Clock) -> Events:
    """How the proxy's monotonic clock stands to the wall clock, by a reading between two."""
    before, wall, after = clock.monotonic_ns(), clock.wall_ns(), clock.monotonic_ns()
    middle = (before + after) // 2
    yield ClockAlignment(
        context=context,
        event_id=f"{context.facts.producer_id}:alignment",
        from_clock_domain=monotonic_domain(identity).name,
        to_clock_domain=wall_domain(identity).name,
        offset_ns=wall - middle,
        uncertainty_ns=(after - before + 1) // 2,
        valid_from_ns=before,
    )
    return ACCOUNT


def _unwritten(writer: Writer, place: Place) -> EvidenceError:
    failure = writer.failure
    why = "the artifact did not take them in time" if failure is None else type(failure).__name__
    if isinstance(failure, ParitraceError):
        why = failure.message
    return EvidenceError(
        f"{writer.num_unwritten} of what was seen is not in {place.path}: {why}",
        code="proxy_unwritten",
        fix="what is in the artifact is whole; mend what the message names before the next proxy",
        outcome=Outcome.FAILED,
    )
