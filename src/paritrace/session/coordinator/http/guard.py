"""Stands before every route: the host, the token, foreign pages, the size of a body (SE-17)."""

from contextlib import suppress

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from paritrace.errors import ParitraceError, RequestError
from paritrace.loopback.bodies import Limited, stated_length
from paritrace.loopback.tokens import HOSTS, bearer, same
from paritrace.session.coordinator.http.answers import trouble

MOST_BODY_BYTES = 1 << 20  # a command is some hundred bytes; a schedule with ten thousand points is a third of this


class Guard:
    """ASGI middleware. A browser has no business here: whatever names an origin is refused."""

    def __init__(self, app: ASGIApp, *, token: str) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        refused = self._refused(Headers(scope=scope)) if scope["type"] == "http" else None
        if refused is not None:
            await trouble(refused)(scope, receive, send)
            return
        body = Limited(receive, most_bytes=MOST_BODY_BYTES, too_large=too_large)
        with suppress(ClientDisconnect):  # a client that goes away within its request is told nothing, and nobody else
            await self._app(scope, body.receive, send)

    def _refused(self, headers: Headers) -> ParitraceError | None:
        if headers.get("host", "").partition(":")[0] not in HOSTS:
            return RequestError(
                "the request names another host than this machine's own",
                code="foreign_host",
                fix="ask the address that session.json has",
            )
        if "origin" in headers or headers.get("sec-fetch-site", "none") != "none":
            return RequestError(
                "a page in a browser asks", code="foreign_origin", fix="ask from a program, with the session's token"
            )
        given = bearer({name.lower(): value for name, value in headers.items()})
        if not same(given, self._token):
            return RequestError(
                "the token of this session is missing or another one",
                code="wrong_token",
                fix="send `Authorization: Bearer TOKEN` with what the file `token` in the session's directory holds",
            )
        if stated_length(headers) > MOST_BODY_BYTES:
            return too_large()
        return None


def too_large() -> RequestError:
    """Return the refusal of a body."""
    return RequestError(
        f"the body of the request has more than {MOST_BODY_BYTES} bytes",
        code="body_too_large",
        fix="send less: inputs are named by a reference, they do not travel in a command",
    )
