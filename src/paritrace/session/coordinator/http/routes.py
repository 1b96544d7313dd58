"""The routes of a session's HTTP API, each with its idempotency class (SE-17)."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

import msgspec
from fastapi import APIRouter, Header, Path, Query, Request
from fastapi.responses import Response
from fastapi.routing import APIRoute

from paritrace.errors import RequestError
from paritrace.loopback.schemas import Schemas
from paritrace.session.api_records import (
    Ask,
    BoundsTable,
    DryRun,
    Events,
    Health,
    JournalPage,
    LeaseGiven,
    LeaseRequest,
    Returned,
    Told,
    Withdrawal,
)
from paritrace.session.bodies import checked_body
from paritrace.session.commands import Command, Kind
from paritrace.session.configuration import KeptConfig
from paritrace.session.coordinator.desk import Desk
from paritrace.session.coordinator.http.answers import answer
from paritrace.session.coordinator.http.described import ASKED, BY_ID, LEASE, READ, Described
from paritrace.session.coordinator.ledger import Waiting
from paritrace.session.coordinator.ring import MOST_AT_ONCE
from paritrace.session.opening import read_journal
from paritrace.session.status import Status

Record = TypeVar("Record")

LONGEST_WAIT_SECONDS = 60.0  # of one answer; whoever waits longer asks again by the id, and is not cut off by a proxy

Wait = Annotated[float, Query(ge=0, le=LONGEST_WAIT_SECONDS, description="Seconds to wait for it")]
Lease = Annotated[str | None, Header(alias="Paritrace-Lease", max_length=100, description="The writer lease, if held")]
Revision = Annotated[int, Path(ge=0, le=2**53)]
CommandId = Annotated[str, Path(pattern=r"^[A-Za-z0-9._-]{1,128}$")]


def routes(desk: Desk, schemas: Schemas, /) -> APIRouter:
    """Return the routes over a desk."""
    api = APIRouter(prefix="/v1")
    described = Described(schemas)
    _reading(api, desk, described)
    _commanding(api, desk, described)
    _leasing(api, desk, described)
    return api


def _reading(api: APIRouter, desk: Desk, described: Described) -> None:
    # longer than 40 lines: one route after the other, each of some lines
    @api.get("/health", summary="Says that the server answers", **described(Health, idempotency=READ))
    async def health(request: Request) -> Response:
        _require_known(request)
        return answer(Health())

    @api.get("/status", summary="The session at this moment", **described(Status, idempotency=READ, errors=(503,)))
    async def status(request: Request) -> Response:
        _require_known(request)
        return answer(desk.status())

    @api.get("/events", summary="What happened after a cursor", **described(Events, idempotency=READ))
    async def events(
        request: Request,
        cursor: Annotated[int, Query(ge=0, le=2**53)] = 0,
        limit: Annotated[int, Query(ge=1, le=MOST_AT_ONCE)] = MOST_AT_ONCE,
        wait_seconds: Wait = 0.0,
    ) -> Response:
        _require_known(request)
        if wait_seconds:
            await desk.ring.wait(cursor, seconds=wait_seconds)
        return answer(desk.ring.since(cursor, limit=limit))

    @api.get("/bounds", summary="Every wait, with its reason", **described(BoundsTable, idempotency=READ))
    async def bounds(request: Request) -> Response:
        _require_known(request)
        return answer(BoundsTable(desk.bounds))

    @api.get(
        "/config", summary="The present configuration", **described(KeptConfig, idempotency=READ, errors=(404, 503))
    )
    def config(request: Request) -> Response:
        _require_known(request)
        return Response(desk.config(None), media_type="application/json")

    @api.get(
        "/config/{revision}",
        summary="The configuration of a revision",
        **described(KeptConfig, idempotency=READ, errors=(404,)),
    )
    def config_of(request: Request, revision: Revision) -> Response:
        _require_known(request)
        return Response(desk.config(revision), media_type="application/json")

    @api.get(
        "/journal",
        summary="Lines of the journal after a number",
        **described(JournalPage, idempotency=READ, errors=(409,)),
    )
    def journal(
        request: Request,
        after: Annotated[int, Query(ge=0, le=2**53)] = 0,
        limit: Annotated[int, Query(ge=1, le=MOST_AT_ONCE)] = MOST_AT_ONCE,
    ) -> Response:
        _require_known(request)
        lines = [line for line in read_journal(desk.directory).lines if line.sequence > after]
        return answer(JournalPage(tuple(lines[:limit]), len(lines) > limit))


def _commanding(api: APIRouter, desk: Desk, described: Described) -> None:
    # longer than 40 lines: one route after the other, each of some lines
    @api.get(
        "/commands/{command_id}",
        summary="How a command stands",
        **described(Told, idempotency=READ, unsettled=True, errors=(404,)),
    )
    async def told(request: Request, command_id: CommandId, wait_seconds: Wait = 0.0) -> Response:
        _require_known(request)
        await _recalled(desk, command_id)
        return await _told(command_id, desk.find(command_id), seconds=wait_seconds)

    for kind in Kind:
        api.add_api_route(
            f"/commands/{kind.value}",
            _asking(desk, kind),
            methods=["POST"],
            name=kind.value,
            summary=f"Ask for {kind.value}",
            **described(
                Told, DryRun, idempotency=BY_ID, asked=ASKED[kind], unsettled=True, errors=(404, 409, 423, 503)
            ),
        )

    @api.post(
        "/withdrawals",
        summary="Give a command up",
        **described(Told, idempotency=BY_ID, asked=Withdrawal, unsettled=True, errors=(404, 423)),
    )
    async def withdraw(request: Request, wait_seconds: Wait = 0.0, lease: Lease = None) -> Response:
        _require_known(request)
        command_id = (await _body(request, Withdrawal)).id
        await _recalled(desk, command_id)
        return await _told(command_id, desk.withdraw(command_id, lease=lease), seconds=wait_seconds)


def _leasing(api: APIRouter, desk: Desk, described: Described) -> None:
    @api.post(
        "/lease",
        summary="Take or renew the writer lease",
        **described(LeaseGiven, idempotency=LEASE, asked=LeaseRequest, errors=(423,)),
    )
    async def take(request: Request) -> Response:
        _require_known(request)
        return answer(desk.lease.take(await _body(request, LeaseRequest)))

    @api.post(
        "/lease/return",
        summary="Give the lease back",
        **described(Health, idempotency=LEASE, asked=Returned, errors=(423,)),
    )
    async def give_back(request: Request) -> Response:
        _require_known(request)
        desk.lease.give_back((await _body(request, Returned)).lease)
        return answer(Health())


def _asking(desk: Desk, kind: Kind) -> Callable[..., Awaitable[Response]]:
    """The route that asks commands of one kind."""

    async def ask(
        request: Request,
        wait_seconds: Wait = 0.0,
        dry_run: Annotated[bool, Query(description="Only say what would become of it; answers with DryRun")] = False,
        lease: Lease = None,
    ) -> Response:
        _require_known(request)
        asked = await _body(request, Ask)
        command = Command(
            asked.id or str(uuid.uuid4()), kind, checked_body(kind, asked.body), asked.fences, asked.timeout_seconds
        )
        if dry_run:
            tried = desk.try_out(command)
            return answer(DryRun(tried.would, tried.reasons))
        await _recalled(desk, command.id)
        return await _told(command.id, desk.ask(command, lease=lease), seconds=wait_seconds)

    return ask


async def _recalled(desk: Desk, command_id: str) -> None:
    """Have what was settled long ago at hand; others are answered while the journal is read."""
    if desk.has_forgotten(command_id):
        await asyncio.to_thread(desk.recall, command_id)


async def _told(command_id: str, waiting: Waiting, *, seconds: float) -> Response:
    """Answer with 200 once there is a reply, with 202 where there is none yet."""
    if seconds and not waiting.done():
        await asyncio.wait([asyncio.wrap_future(waiting)], timeout=seconds)
    reply = waiting.result() if waiting.done() else None
    return answer(Told(command_id, reply), status=202 if reply is None else 200)


async def _body(request: Request, kind: type[Record]) -> Record:
    """Return the body of a request as a record.

    Raises:
        RequestError: Refused, `bad_command`, `body_too_large`.
    """
    data = await request.body()
    try:
        return msgspec.json.decode(data or b"{}", type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise RequestError(
            f"the body of the request: {error}",
            code="bad_command",
            fix="see /v1/openapi.json for what it may hold",
        ) from None


def _require_known(request: Request) -> None:
    """Refuse parameters that a route does not know, or that are given twice.

    Raises:
        RequestError: Refused, `bad_command`.
    """
    route = request.scope["route"]
    known = {found.alias for found in route.dependant.query_params} if isinstance(route, APIRoute) else set[str]()
    given = [name for name, _ in request.query_params.multi_items()]
    wrong = sorted({name for name in given if name not in known or given.count(name) > 1})
    if wrong:
        raise RequestError(
            f"{', '.join(wrong)[:200]}: unknown here, or given twice",
            code="bad_command",
            fix=f"this route knows {', '.join(sorted(known)) or 'no parameters'}",
        )
