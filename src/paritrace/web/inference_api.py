"""The JSON API over inference evidence: what its pages show, for programs (SU-10)."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from fastapi.responses import Response

from paritrace.inference.event_lines import EventLines, Wanted
from paritrace.inference.request_lines import RequestLines
from paritrace.inference.served_result import ServedReport
from paritrace.web import contents
from paritrace.web.api import Key, Limit, Offset, document
from paritrace.web.inference_evidence import InferenceEvidence, InferenceShown
from paritrace.web.schemas import answer_with

Id = Annotated[str, Query(description="Any id that a party has for the request", max_length=16_384)]
Word = Annotated[str, Query(max_length=16_384)]


def wanted(  # noqa: PLR0913  one parameter per filter of the address
    kind: Word = "",
    domain: Word = "",
    linked: Word = "",
    device: Word = "",
    clock: Word = "",
    producer: Word = "",
    iteration: Word = "",
) -> Wanted:
    """Returns what the query of an address looks for."""
    return Wanted(
        kind=kind,
        domain=domain,
        linked=linked,
        device=device,
        clock=clock,
        producer=producer,
        iteration=iteration,
    )


Looked = Annotated[Wanted, Depends(wanted)]


def routes(evidence: InferenceEvidence, /) -> APIRouter:
    """Returns the routes over the artifacts of runs."""
    api = APIRouter(prefix="/api/runs/{key}/inference", tags=["read only"])

    @api.get("", responses=answer_with(InferenceShown), summary="As infer show, account, requests --json; and links")
    def shown(key: Key) -> Response:
        return document(evidence.shown(key))

    @api.get("/requests", responses=answer_with(RequestLines), summary="Requests as each party tells them")
    def requests(key: Key, offset: Offset = 0) -> Response:
        return document(evidence.requests(key, offset=contents.bounded(offset, 1)[0]))

    @api.get("/request", responses=answer_with(ServedReport), summary="One request, as infer show --request --json")
    def request(key: Key, id: Id) -> Response:  # noqa: A002  the name of the query's field
        return document(evidence.request(key, id))

    @api.get("/events", responses=answer_with(EventLines), summary="The lines of the artifact behind a figure")
    def events(key: Key, looked: Looked, offset: Offset = 0, limit: Limit = contents.PAGE_ROWS) -> Response:
        offset, limit = contents.bounded(offset, limit)
        return document(evidence.events(key, looked, offset=offset, limit=limit))

    return api
