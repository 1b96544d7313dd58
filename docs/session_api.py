"""Makes the reference of a session's HTTP API from its routes: `reference/session-api.md` and the OpenAPI document."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from paritrace.errors import InternalError
from paritrace.session.commands import Command
from paritrace.session.coordinator.desk import Desk
from paritrace.session.coordinator.http.answers import STATUS
from paritrace.session.coordinator.http.application import DOCUMENT, application
from paritrace.session.coordinator.http.described import ALWAYS
from paritrace.session.coordinator.ledger import Ledger
from paritrace.session.coordinator.ring import Ring
from paritrace.session.coordinator.trying import Tried

Operation = dict[str, Any]

STATUSES = "\n".join(f"| `{code}` | {status} |" for code, status in STATUS.items())
HEAD = f"""# The HTTP API of a session

<!-- made by docs/generate.py from the code: do not edit -->

The verbs of `paritrace session` for programs in any language. The coordinator answers on 127.0.0.1 at the address that
`session.json` has, to whoever sends `Authorization: Bearer TOKEN` with the token of the file `token`. The OpenAPI
document is [session-api.json](session-api.json); a running session gives the same one at `{DOCUMENT}`.

`idempotency`: `read` changes nothing; what is asked `by id` is done once, and the same id again gives the first result;
a `lease` is renewed by showing it, in the header `Paritrace-Lease` of a command.

A command that has no result yet is answered with 202 and asked for again at `/v1/commands/{{command_id}}`. Every error
is the document `Trouble`. Its status is that of its code ([errors](../errors.md)), and 400, or 409 where the directory
or the machine is in the way, for the others. Any route may answer {", ".join(map(str, ALWAYS))}.

| code | status |
|---|---|
{STATUSES}

| method | route | idempotency | asks | parameters | answers | errors beside those |
|---|---|---|---|---|---|---|
"""


def session_api_page() -> str:
    """The whole page `reference/session-api.md`."""
    return HEAD + "".join(_rows())


def document_text() -> str:
    """The OpenAPI document as it is committed."""
    return json.dumps(_document(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


@cache
def _document() -> dict[str, Any]:
    """What a coordinator serves; nobody is asked, so nobody stands behind the desk."""
    desk = Desk(
        Path(),
        ledger=Ledger({}, {}, recall=lambda _: (None, None)),
        ring=Ring(),
        bounds=(),
        wake=lambda: None,
        trying=_nobody,
        document=lambda _revision: None,
    )
    return application(desk, token="").openapi()


def _nobody(_command: Command, /) -> Tried:
    raise InternalError("nobody stands behind this desk", code="internal", fix="start a session")


def _rows() -> Iterator[str]:
    for path, methods in _document()["paths"].items():
        for method, operation in methods.items():
            cells = (
                method.upper(),
                f"`{path}`",
                operation["x-idempotency"],
                _asked(operation),
                ", ".join(f"`{one['name']}`" for one in operation.get("parameters", ()) if one["in"] == "query"),
                _answers(operation),
                ", ".join(code for code in operation["responses"] if int(code) >= 400 and int(code) not in ALWAYS),
            )
            yield f"| {' | '.join(cells)} |\n"


def _asked(operation: Operation) -> str:
    if "requestBody" not in operation:
        return ""
    pointer: str = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    return f"`{pointer.rpartition('/')[2]}`"


def _answers(operation: Operation) -> str:
    return "; ".join(
        f"{code} {response['description']}" for code, response in operation["responses"].items() if int(code) < 400
    )
