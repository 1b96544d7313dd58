"""The records that the JSON API answers with and takes, as the schemas of its OpenAPI document (SU-10)."""

from functools import lru_cache
from typing import Any

from paritrace.attempts.explaining import Explained
from paritrace.compare.checks_result import Checked
from paritrace.compare.result import Comparison
from paritrace.inference.event_lines import EventLines
from paritrace.inference.request_lines import RequestLines
from paritrace.inference.served_result import ServedReport
from paritrace.loopback.schemas import Schemas
from paritrace.reports.explanation import Explanation
from paritrace.reports.shelf import Shelf
from paritrace.reports.shelf_others import StorePage
from paritrace.runs.showing import RunSummary
from paritrace.runs.verify import Verification
from paritrace.session.api_records import Told
from paritrace.session.metrics import KeptMetrics
from paritrace.web.call_detail import CallDetail
from paritrace.web.calls_database import Answer
from paritrace.web.contents import AttemptsShown, Facets
from paritrace.web.inference_evidence import InferenceShown
from paritrace.web.session_asked import ASKED
from paritrace.web.session_view import SessionShown
from paritrace.web.source_view import SourcePage

RECORDS: tuple[type, ...] = (
    Shelf,
    RunSummary,
    Verification,
    Checked,
    StorePage,
    Comparison,
    Explanation,
    Answer,
    Facets,
    AttemptsShown,
    Explained,
    CallDetail,
    SourcePage,
    InferenceShown,
    RequestLines,
    ServedReport,
    EventLines,
    SessionShown,
    KeptMetrics,
    Told,
    *dict.fromkeys(ASKED.values()),
)


@lru_cache(maxsize=1)
def _made() -> Schemas:
    return Schemas(RECORDS)


def answer_with(kind: type, /, *, status: int = 200) -> dict[int | str, dict[str, Any]]:
    """Returns what FastAPI documents as the answer of a route."""
    return _made().answer_with(kind, status=status)


def asked_with(kind: type, /) -> dict[str, Any]:
    """Returns what FastAPI documents as the body of a route's request."""
    return _made().asked_with(kind, required=True)


def with_components(document: dict[str, Any], /) -> dict[str, Any]:
    """Returns an OpenAPI document with the records it refers to."""
    return _made().with_components(document)
