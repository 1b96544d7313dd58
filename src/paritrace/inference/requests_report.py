"""The document of `infer requests`: requests of an artifact by source, and which of them are one (IN-14)."""

from pathlib import Path

from msgspec import Struct

from paritrace.evidence.digests import sha256_of
from paritrace.files import LOCAL, Files
from paritrace.inference.artifact import Events, head_of, place_of
from paritrace.inference.request_joining import Joined, joins, sources_of

FORMAT = "paritrace-inference-requests"
VERSION = "1.0"
MOST_SHOWN = 1_000  # joined requests that are listed of two sources; all are counted


class SourceRequests(Struct, frozen=True):
    """How many requests a source saw, and how many of them without any id that another source could know."""

    source: str
    requests: int
    without_id: int


class JoinReport(Struct, frozen=True):
    """Two sources: how many requests are one, by what, and why the first one's others are not."""

    first: str
    second: str
    joined: int
    by_basis: dict[str, int]
    unjoined: dict[str, int]
    requests: tuple[Joined, ...]
    left_out: int


class RequestsReport(Struct, frozen=True, kw_only=True):
    """Requests of one artifact; they are joined by request id only, never by time."""

    format: str = FORMAT
    version: str = VERSION
    run_id: str
    artifact_sha256: str
    sources: tuple[SourceRequests, ...]
    joins: tuple[JoinReport, ...]


def requests_of(path: Path, *, files: Files = LOCAL) -> RequestsReport:
    """Returns which requests of an artifact are one.

    Raises:
        EvidenceError, HostError: Refused, as reading the artifact.
    """
    place = place_of(path)
    head = head_of(place, files=files)
    sources = sources_of(Events(place, files=files))
    return RequestsReport(
        run_id=head.context.facts.run_id,
        artifact_sha256=sha256_of(files.iter_chunks(place.path)).sha256,
        sources=tuple(
            SourceRequests(name, len(found), sum(not one.ids for one in found)) for name, found in sources.items()
        ),
        joins=tuple(
            JoinReport(
                first=one.first,
                second=one.second,
                joined=len(one.joined),
                by_basis=_by_basis(one.joined),
                unjoined=one.unjoined,
                requests=one.joined[:MOST_SHOWN],
                left_out=max(0, len(one.joined) - MOST_SHOWN),
            )
            for one in joins(sources)
        ),
    )


def _by_basis(joined: tuple[Joined, ...]) -> dict[str, int]:
    found: dict[str, int] = {}
    for one in joined:
        found[one.basis.value] = found.get(one.basis.value, 0) + 1
    return dict(sorted(found.items()))
