"""Serves the application on 127.0.0.1 until it is told to end; its address is known only once it answers (SU-11)."""

import secrets
import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import FrameType

from msgspec import Struct

from paritrace.errors import HostError, InternalError, Outcome
from paritrace.loopback.listening import ANSWERS_WITHIN_SECONDS, HOST, bound, is_healthy, running
from paritrace.loopback.tokens import TOKEN_BYTES
from paritrace.web.application import application
from paritrace.web.perfetto import installed, perfetto_page

ASKED_EVERY_SECONDS = 0.05
LOOKED_AT_EVERY_SECONDS = 1.0  # whether the server still runs; a signal is noticed at once
HIGHEST_PORT = 65_535


class Served(Struct, frozen=True):
    """A server that answers. `url` holds the token."""

    url: str
    port: int
    perfetto_port: int | None = None  # of Perfetto's page, None where it is not installed

    def at(self, page: str, /) -> str:
        """The address of a page, with the token."""
        return self.url.replace("/?", f"{page}?", 1)


def serve(path: Path, /, *, port: int, ready: Callable[[Served], None], allow_control: bool = False) -> None:
    """Serve until SIGINT or SIGTERM; `ready` is called once a health check over HTTP has passed.

    `allow_control`: take commands of sessions from their pages (SU-11).

    Raises:
        HostError: Refused, `port_taken`; Failed, `view_not_answering`.
    """
    ended = threading.Event()
    before = {number: signal.signal(number, _ending(ended)) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        serve_until(ended, path, port=port, ready=ready, allow_control=allow_control)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _ending(ended: threading.Event) -> Callable[[int, FrameType | None], None]:
    return lambda _number, _frame: ended.set()


def serve_until(
    ended: threading.Event,
    path: Path,
    /,
    *,
    port: int,
    ready: Callable[[Served], None],
    allow_control: bool = False,
) -> None:
    """Serve until the event is set, otherwise as `serve`."""
    with ExitStack() as opened:
        listening = opened.enter_context(bound(port))
        found, token = int(listening.getsockname()[1]), secrets.token_urlsafe(TOKEN_BYTES)
        origin = f"http://{HOST}:{found}"
        beside = _beside(path, port=port, shown_in=origin, opened=opened)
        perfetto = beside.address if beside else ""
        app = application(path, token=token, origin=origin, perfetto=perfetto, allow_control=allow_control)
        thread = opened.enter_context(running(app, listening))
        _wait_for_health(found, token=token, thread=thread, ended=ended)
        if not ended.is_set():
            ready(Served(f"{origin}/?token={token}", found, beside.port if beside else None))
        while thread.is_alive() and not ended.wait(LOOKED_AT_EVERY_SECONDS):
            pass
    if not ended.is_set():
        raise InternalError(
            "the server ended by itself",
            code="view_not_answering",
            fix="run it again with --debug and report what it prints",
            outcome=Outcome.FAILED,
        )


class _Beside(Struct, frozen=True):
    """Where Perfetto's page is served."""

    address: str
    port: int


def _beside(path: Path, *, port: int, shown_in: str, opened: ExitStack) -> _Beside | None:
    """Serve Perfetto's page from a port of its own, the next one to a port that was asked for; None without it."""
    folder = installed()
    if folder is None:
        return None
    listening = opened.enter_context(_bound_next_to(port))
    found, token = int(listening.getsockname()[1]), secrets.token_urlsafe(TOKEN_BYTES)
    opened.enter_context(running(perfetto_page(path, folder, token=token, shown_in=shown_in), listening))
    return _Beside(f"http://{HOST}:{found}/{token}/", found)


def _bound_next_to(port: int) -> socket.socket:
    if not port or port == HIGHEST_PORT:
        return bound(0)
    try:
        return bound(port + 1)
    except HostError:
        return bound(0)


def _wait_for_health(port: int, *, token: str, thread: threading.Thread, ended: threading.Event) -> None:
    deadline = time.monotonic() + ANSWERS_WITHIN_SECONDS
    while not ended.is_set() and not is_healthy(port, token=token):
        if time.monotonic() > deadline or not thread.is_alive():
            raise HostError(
                f"the server on port {port} does not answer",
                code="view_not_answering",
                fix="look for a firewall or proxy on 127.0.0.1, or use `paritrace explain` in the terminal",
                outcome=Outcome.FAILED,
            )
        ended.wait(ASKED_EVERY_SECONDS)
