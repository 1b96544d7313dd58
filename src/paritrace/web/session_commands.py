"""Commands of a resident session from its page: each is checked and forwarded to the session's own API (SU-10, SU-11).

The session's token stays here.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Request
from fastapi import Path as InPath
from fastapi.responses import Response
from msgspec import DecodeError
from msgspec import json as msgspec_json
from starlette.concurrency import run_in_threadpool

from paritrace.errors import HostError, RequestError
from paritrace.process.identity import Life, liveness
from paritrace.reports.documents import encoded
from paritrace.session.api_records import Ask, Told
from paritrace.session.bodies import checked_body
from paritrace.session.client import Client
from paritrace.session.commands import Fences, Kind
from paritrace.session.opening import read_session
from paritrace.web.library import Library
from paritrace.web.navigation import Key
from paritrace.web.schemas import answer_with, asked_with
from paritrace.web.session_asked import ASKED, Asked

WAIT_SECONDS = 1.0  # of one answer; the page asks again by the id, and a thread of the server is held no longer
ANSWERS_WITHIN_SECONDS = 10.0  # beyond that: a coordinator that writes a report takes seconds

Answered = TypeVar("Answered")
Id = Annotated[str, InPath(pattern=r"^[A-Za-z0-9._-]{1,128}$")]


class SessionCommands:
    """Routes that exist only where the view was started with `--allow-control`."""

    def __init__(self, library: Library) -> None:
        self._library = library

    def routes(self) -> APIRouter:
        made = APIRouter(prefix="/api/sessions/{key}/commands", tags=["commands"])
        for kind, record in ASKED.items():
            made.add_api_route(
                f"/{kind.value}",
                self._asking(kind, record),
                methods=["POST"],
                name=f"session_{kind.value}",
                responses=answer_with(Told) | answer_with(Told, status=202),
                openapi_extra=asked_with(record),
                summary=f"Ask the session for {kind.value}; 202 while there is no result yet",
            )
        made.add_api_route(
            "/{command_id}",
            self.told,
            responses=answer_with(Told) | answer_with(Told, status=202),
            summary="How a command stands, by its id",
        )
        return made

    def told(self, key: Key, command_id: Id) -> Response:
        return _answer(_asked_of(self._library.session(key), lambda client: client.reconcile(command_id)))

    def _asking(self, kind: Kind, record: type[Asked]) -> Callable[..., Any]:
        async def ask(key: Key, request: Request) -> Response:
            asked = _decoded(await request.body(), record)
            return await run_in_threadpool(self._ask, key, kind, asked)

        return ask

    def _ask(self, key: str, kind: Kind, asked: Asked) -> Response:
        directory = self._library.session(key)
        body = checked_body(kind, asked.body(directory))
        command = Ask(body, asked.id, Fences(generation=asked.generation))
        return _answer(
            _asked_of(directory, lambda client: client.begin(kind, command, wait_seconds=WAIT_SECONDS)),
        )


def _asked_of(directory: Path, question: Callable[[Client], Answered]) -> Answered:
    """Ask a coordinator, where its process is proven to live on this machine: the token is shown to nobody else.

    Raises:
        HostError: Refused, `coordinator_gone`; else as the session's client.
    """
    owner = liveness(read_session(directory).owner)
    if owner.life is not Life.ALIVE:
        raise HostError(
            f"nobody takes commands of this session: {owner.why}",
            code="coordinator_gone",
            fix="`paritrace session start` in the same directory goes on from its journal and checkpoints",
        )
    with Client(directory, answers_within_seconds=ANSWERS_WITHIN_SECONDS) as client:
        return question(client)


def _answer(told: Told) -> Response:
    return Response(encoded(told), 202 if told.reply is None else 200, media_type="application/json")


def _decoded(data: bytes, record: type[Asked]) -> Asked:
    try:
        return msgspec_json.decode(data, type=record)
    except (DecodeError, RecursionError) as error:
        raise RequestError(
            f"the body of the request: {error}",
            code="bad_command",
            fix="see /api/openapi.json for what it may hold",
        ) from None
