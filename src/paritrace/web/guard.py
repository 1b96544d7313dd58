"""Stands before every page: asks the rule of access, and tells the browser to be strict with every answer (SU-11)."""

from collections.abc import Mapping
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from paritrace.errors import RequestError
from paritrace.loopback.bodies import Limited
from paritrace.web.access import TOKEN, Request, Verdict, verdict
from paritrace.web.troubles import refusal_of

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
MOST_BODY_BYTES = 1 << 16  # of a command from a page: a name and a value
_OPEN = "open the address that `paritrace view` printed: its token opens every page"
REFUSALS = {
    Verdict.NO_TOKEN: RequestError("the request shows no token", code="no_token", fix=_OPEN),
    Verdict.WRONG_TOKEN: RequestError("this token is not the one of this server", code="wrong_token", fix=_OPEN),
    Verdict.FOREIGN_ORIGIN: RequestError(
        "another page asks, or the origin is not stated; only pages of this server may",
        code="foreign_origin",
        fix=_OPEN,
    ),
    Verdict.FOREIGN_HOST: RequestError(
        "the request names another host than this machine's own", code="foreign_host", fix=_OPEN
    ),
    Verdict.NOT_READING: RequestError(
        "this address only shows: GET is all it answers",
        code="wrong_method",
        fix="a session's commands are taken where the view was started with --allow-control",
    ),
    Verdict.NOT_JSON: RequestError(
        "a command is a JSON document", code="not_json", fix="send it with the content type application/json"
    ),
}


class Guard:
    """ASGI middleware. `origin`: the server's own, `http://127.0.0.1:PORT`; `frames`: whose pages ours may frame.

    `allow_control`: whether commands of sessions are taken.
    """

    def __init__(self, app: ASGIApp, *, token: str, origin: str, frames: str = "", allow_control: bool = False) -> None:
        self._app = app
        self._headers = HEADERS | {"Content-Security-Policy": POLICY + (f"; frame-src {frames}" if frames else "")}
        self._token = token
        self._origin = origin
        self._allow_control = allow_control
        self._cookie = cookie_name(token)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        response = self._answered(scope)
        body = Limited(receive, most_bytes=MOST_BODY_BYTES, too_large=_too_large)
        await (self._app if response is None else response)(scope, body.receive, with_headers(send, self._headers))

    def _answered(self, scope: Scope) -> Response | None:
        """The answer that is given here, None where the page may be shown."""
        request = _request(scope, cookie=self._cookie)
        found = verdict(request, token=self._token, origin=self._origin, allow_control=self._allow_control)
        match found:
            case Verdict.SERVED:
                return None
            case Verdict.ENTERS:
                return self._entered(scope)
            case _:
                return refusal_of(REFUSALS[found], path=request.path)

    def _entered(self, scope: Scope) -> Response:
        """Moves the token from the address into a cookie, so that it stands in no history and no screenshot."""
        rest = [(name, value) for name, value in _query(scope) if name != TOKEN]
        place = "/" + str(scope["path"]).lstrip("/")
        response = RedirectResponse(place + ("?" + urlencode(rest) if rest else ""), status_code=303)
        response.set_cookie(self._cookie, self._token, httponly=True, samesite="lax", path="/")
        return response


def _too_large() -> RequestError:
    return RequestError(
        f"the body of the request has more than {MOST_BODY_BYTES} bytes",
        code="body_too_large",
        fix="send less: a command is a name and a value",
    )


def cookie_name(token: str, /) -> str:
    """Returns a name that two servers of one machine do not share: cookies know no ports."""
    return f"paritrace-{sha256(token.encode()).hexdigest()[:12]}"


def _request(scope: Scope, *, cookie: str) -> Request:
    headers = Headers(scope=scope)
    tokens = [value for name, value in _query(scope) if name == TOKEN]
    return Request(
        method=str(scope["method"]),
        path=str(scope["path"]),
        headers={name.lower(): value for name, value in headers.items()},
        token=tokens[0] if tokens else None,
        cookie=_cookie(headers.get("cookie", ""), cookie),
    )


def _query(scope: Scope) -> list[tuple[str, str]]:
    return parse_qsl(bytes(scope["query_string"]).decode("latin-1"), keep_blank_values=True)


def _cookie(header: str, name: str) -> str | None:
    try:
        found = SimpleCookie(header).get(name)
    except CookieError:
        return None
    return None if found is None else found.value


def with_headers(send: Send, told: Mapping[str, str], /) -> Send:
    """Returns a `send` that puts headers on every answer."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in told.items():
                headers[name] = value
        await send(message)

    return sending
