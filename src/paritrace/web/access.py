"""Who may see a page or send a command: the rule of host, token, origin and method, without any effect (SU-11)."""

import re
from collections.abc import Mapping
from enum import Enum

from msgspec import Struct

from paritrace.loopback.tokens import HOSTS, bearer, same

TOKEN = "token"  # noqa: S105  the name of the parameter
NAVIGATION = "navigate"
COMMAND = re.compile(r"/api/sessions/[^/]+/commands/[a-z]+")
JSON = "application/json"
OWN_FETCH_SITES = frozenset({"", "same-origin", "none"})  # "" : a program that is no browser


class Verdict(Enum):
    """What becomes of a request."""

    SERVED = "served"
    ENTERS = "enters"  # the token stands in the address: it moves into a cookie
    NO_TOKEN = "no_token"  # noqa: S105
    WRONG_TOKEN = "wrong_token"  # noqa: S105
    FOREIGN_ORIGIN = "foreign_origin"
    FOREIGN_HOST = "foreign_host"
    NOT_READING = "not_reading"
    NOT_JSON = "not_json"


class Request(Struct, frozen=True):
    """What of a request decides. `headers` by lower-case name."""

    method: str
    path: str
    headers: Mapping[str, str]
    token: str | None  # in the address
    cookie: str | None


def verdict(request: Request, /, *, token: str, origin: str, allow_control: bool = False) -> Verdict:
    """Returns what becomes of a request. `origin` is the server's own, `http://127.0.0.1:PORT`.

    With `allow_control` a command of a session may be sent, by a page of this origin alone: whoever sends one states
    the origin, which a browser does by itself and no other page can change.
    """
    if request.headers.get("host", "").partition(":")[0] not in HOSTS:
        return Verdict.FOREIGN_HOST
    if request.method == "POST" and allow_control and COMMAND.fullmatch(request.path):
        if request.headers.get("origin") != origin or _is_foreign(request, origin=origin):
            return Verdict.FOREIGN_ORIGIN
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
            return Verdict.NOT_JSON
    elif request.method != "GET":
        return Verdict.NOT_READING
    elif _is_foreign(request, origin=origin):
        return Verdict.FOREIGN_ORIGIN
    elif request.token is not None:
        return Verdict.ENTERS if same(request.token, token) else Verdict.WRONG_TOKEN
    shown = bearer(request.headers) or request.cookie
    if not shown:
        return Verdict.NO_TOKEN
    return Verdict.SERVED if same(shown, token) else Verdict.WRONG_TOKEN


def _is_foreign(request: Request, *, origin: str) -> bool:
    """Whether another page asks. Following a link from one is no harm: the page it leads to is not its own to read."""
    stated = request.headers.get("origin")
    if stated is not None and stated != origin:
        return True
    if request.headers.get("sec-fetch-site", "") in OWN_FETCH_SITES:
        return False
    return request.headers.get("sec-fetch-mode") != NAVIGATION or request.headers.get("sec-fetch-dest") != "document"
