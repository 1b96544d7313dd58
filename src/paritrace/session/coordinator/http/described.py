"""What the OpenAPI document says of a route: what it takes, each answer it has, its idempotency class (SE-17)."""

from types import MappingProxyType
from typing import Any, cast

import msgspec

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
    Trouble,
    Withdrawal,
)
from paritrace.session.bodies import BODIES
from paritrace.session.commands import Kind
from paritrace.session.configuration import KeptConfig
from paritrace.session.status import Status

API_VERSION = "1.0"
READ, BY_ID, LEASE = "read", "by id", "lease"
"""Idempotency: reads change nothing; a command with the same id is done once; a lease is renewed by showing it."""

ALWAYS = (400, 401, 403, 413, 500)
"""Of any route: a request that does not fit it, no token, a page in a browser, too large a body, a fault of ours."""


def asked_of(kind: Kind) -> type[Ask]:
    """Return `Ask` with the body of one kind of command, as `bodies.checked_body` takes it."""
    body = BODIES[kind]
    needed = any(one.required for one in msgspec.structs.fields(body))
    made = msgspec.defstruct(
        f"{kind.value.capitalize()}Ask",
        [("body", body) if needed else ("body", body, msgspec.field(default_factory=body))],
        bases=(Ask,),
        namespace={"__doc__": f"Asks for `{kind.value}`. `id`: the caller's own, drawn where it is left out (SE-7)."},
        frozen=True,
        kw_only=True,
        omit_defaults=True,
        forbid_unknown_fields=True,
    )
    return cast("type[Ask]", made)


ASKED = MappingProxyType({kind: asked_of(kind) for kind in Kind})
ANSWERS: tuple[type, ...] = (
    Status,
    Events,
    Told,
    DryRun,
    BoundsTable,
    JournalPage,
    LeaseGiven,
    Health,
    KeptConfig,
    Trouble,
)
RECORDS: tuple[type, ...] = (*ANSWERS, *ASKED.values(), Withdrawal, LeaseRequest, Returned)


class Described:
    """What FastAPI is told of a route beside what it sees by itself."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas

    def __call__(
        self,
        *answers: type,
        idempotency: str,
        asked: type | None = None,
        unsettled: bool = False,
        errors: tuple[int, ...] = (),
    ) -> dict[str, Any]:
        """Return it.

        Args:
            answers: The records of its answers with status 200: one of them.
            idempotency: READ, BY_ID or LEASE.
            asked: The record of its body.
            unsettled: Whether it may answer with 202: a command that has no result yet.
            errors: What it may answer beside ALWAYS.
        """
        responses = self._schemas.answer_with(*answers)
        if unsettled:
            responses |= self._schemas.answer_with(Told, status=202)
        for status in sorted({*ALWAYS, *errors}):
            responses |= self._schemas.answer_with(Trouble, status=status)
        extra: dict[str, Any] = {"x-idempotency": idempotency}
        if asked is not None:
            needed = any(one.required for one in msgspec.structs.fields(asked))
            extra |= self._schemas.asked_with(asked, required=needed)
        return {"responses": responses, "openapi_extra": extra}


def documented(document: dict[str, Any], schemas: Schemas, /) -> dict[str, Any]:
    """Return FastAPI's document with our records in place of its own: no route answers 422, errors are `Trouble`."""
    for path in document["paths"].values():
        for operation in path.values():
            operation["responses"].pop("422", None)
            operation["security"] = [{"token": []}]
    document["components"] = {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}}
    return schemas.with_components(document)
