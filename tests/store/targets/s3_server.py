"""A real S3 server as a process of its own on 127.0.0.1, and a proxy before it that loses, tears and refuses."""

import http.client
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

START_SECONDS = 60.0  # it starts in a second; the machine may be busy
KEPT_BACK = frozenset({"connection", "transfer-encoding", "keep-alive"})


@contextmanager
def s3_server() -> Generator[int, None, None]:
    """The port of a server that answers; it is ended with the block."""
    port = _free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        try:
            _wait_for(port, child)
            yield port
        finally:
            child.kill()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _wait_for(port: int, child: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        assert child.poll() is None, "the server ended"
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
        except OSError:
            time.sleep(0.02)
            continue
        return
    raise AssertionError("the server did not start")


class Proxy:
    """Hands requests on. `faults` holds what happens to the next ones, in order, as (method, fault)."""

    def __init__(self, upstream: int) -> None:
        self.upstream = upstream
        self.faults: list[tuple[str, str]] = []
        self.seen: list[str] = []
        self.client: Any = None
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"proxy": self}))
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> "Proxy":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=10.0)

    def fault_of(self, method: str) -> str:
        """What is to happen to this request; `always …` stays."""
        if not self.faults or self.faults[0][0] != method:
            return ""
        fault = self.faults[0][1]
        if not fault.startswith("always "):
            self.faults.pop(0)
        return fault.removeprefix("always ")


class _Handler(BaseHTTPRequestHandler):
    proxy: Proxy
    protocol_version = "HTTP/1.1"
    timeout = 30.0

    def log_message(self, *_: object) -> None:
        pass

    def _handle(self) -> None:
        fault = self.proxy.fault_of(self.command)
        length = int(self.headers.get("Content-Length") or 0)
        self.proxy.seen.append(f"{self.command} {fault}".strip())
        if fault == "torn":
            self.rfile.read(length // 2)
            self.close_connection = True
            return
        body = self.rfile.read(length)
        if fault.isdecimal():
            self._answer(int(fault))
            return
        headers = {key: value for key, value in self.headers.items() if key.lower() not in KEPT_BACK | {"expect"}}
        if fault == "overwrites":
            headers.pop("If-None-Match", None)
        self._hand_on(body, headers, fault)

    def _hand_on(self, body: bytes, headers: dict[str, str], fault: str) -> None:
        upstream = http.client.HTTPConnection("127.0.0.1", self.proxy.upstream, timeout=30.0)
        try:
            upstream.request(self.command, self.path, body=body, headers=headers)
            reply = upstream.getresponse()
            data = reply.read()
        except OSError as error:
            self.proxy.seen.append(f"{self.command} upstream {error}")
            self._answer(503)
            return
        finally:
            upstream.close()
        if fault == "reply lost":
            self.close_connection = True
            return
        self.send_response(reply.status)
        given = {key: value for key, value in reply.getheaders() if key.lower() not in KEPT_BACK}
        if self.command != "HEAD":
            given["Content-Length"] = str(len(data))
        for key, value in given.items():
            self.send_header(key, value)
        self.end_headers()
        if fault == "cut":
            data = data[: len(data) // 2]
            self.close_connection = True
        if self.command != "HEAD":
            self.wfile.write(data)

    def _answer(self, status: int) -> None:
        code = {403: "AccessDenied", 404: "NoSuchKey", 409: "ConditionalRequestConflict", 503: "SlowDown"}[status]
        data = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>told to</Message></Error>".encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _handle  # noqa: N815  names that the library asks for


def client_of(port: int) -> Any:
    """A client for a local server, with the settings of `client_from_environment` and short waits."""
    import boto3
    from botocore.config import Config

    return boto3.session.Session("key", "secret", region_name="us-east-1").client(
        "s3",
        endpoint_url=f"http://127.0.0.1:{port}",
        config=Config(
            connect_timeout=10.0,
            read_timeout=10.0,
            retries={"mode": "standard", "total_max_attempts": 3},
            s3={"payload_signing_enabled": False, "addressing_style": "path"},
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        ),
    )
