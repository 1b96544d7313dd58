"""Serves an application on 127.0.0.1 and nowhere else, in a thread of its own that ends within a deadline (P5)."""

import json
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING

from paritrace.errors import HostError

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp

HOST = "127.0.0.1"
ANSWERS_WITHIN_SECONDS = 30.0  # a start takes a second; only a machine in trouble needs more
ENDS_WITHIN_SECONDS = 5.0  # answers under way are finished; one that takes longer is cut off
LISTENING = 64


@contextmanager
def running(
    app: "ASGIApp", listening: socket.socket, /, *, name: str = "paritrace-http"
) -> Generator[threading.Thread]:
    """Serve in a thread of its own while the block runs; what is under way at its end is finished within a deadline."""
    server = _server(app)
    thread = threading.Thread(target=server.run, args=([listening],), name=name, daemon=True)
    thread.start()
    try:
        yield thread
    finally:
        server.should_exit = True
        thread.join(ENDS_WITHIN_SECONDS)


def bound(port: int, /) -> socket.socket:
    """Return a socket that listens on 127.0.0.1 and nowhere else; port 0 is any free one.

    Raises:
        HostError: Refused, `port_taken`.
    """
    # with its protocol named, asyncio sets TCP_NODELAY on what it accepts; else head and body of an answer, two writes,
    # wait for each other by Nagle's rule and the other side's delayed acknowledgement: 44 ms an answer
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
        listening.listen(LISTENING)
    except OSError as error:
        listening.close()
        raise HostError(
            f"port {port} of {HOST} cannot be used: {error.strerror}",
            code="port_taken",
            fix="leave --port out, and any free port is taken",
        ) from error
    return listening


def _server(app: "ASGIApp") -> "uvicorn.Server":
    import uvicorn  # where a socket alone is wanted, nobody waits for it

    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none",
        lifespan="off",
        timeout_graceful_shutdown=int(ENDS_WITHIN_SECONDS) - 1,
    )
    return uvicorn.Server(config)


def is_healthy(port: int, /, *, token: str, path: str = "/api/health") -> bool:
    """Whether the server answers over HTTP as itself: no proxy of the environment is asked."""
    connection = HTTPConnection(HOST, port, timeout=ANSWERS_WITHIN_SECONDS)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        return answer.status == 200 and json.loads(answer.read()) == {"ok": True}
    except (OSError, HTTPException, ValueError):
        return False
    finally:
        connection.close()
