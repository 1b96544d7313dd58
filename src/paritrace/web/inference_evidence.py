"""What the pages and the API say of a run's inference evidence: one function for both (SU-10, IN-25)."""

import threading
from collections import OrderedDict
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from paritrace.errors import RequestError
from paritrace.evidence.ids import Ref
from paritrace.files import LOCAL
from paritrace.inference.account_report import account_artifact
from paritrace.inference.artifact import ARTIFACT_NAME, Events, place_of
from paritrace.inference.event_lines import EventLines, Wanted, event_lines
from paritrace.inference.link_counts import derived_counts
from paritrace.inference.linking import LinkTables
from paritrace.inference.records import Iteration, Request, Stage
from paritrace.inference.request_lines import RequestLines, request_lines
from paritrace.inference.requests_report import RequestsReport, requests_of
from paritrace.inference.result import AccountReport, LinkCounts, ShowReport
from paritrace.inference.served_result import ServedReport
from paritrace.inference.serving_request import served_request
from paritrace.inference.show_report import show_artifact
from paritrace.web.library import Library, Stamp, stamp_of

KEPT = 8  # summaries; each is bounded, and takes as long as its artifact is large
REQUESTS = 500  # of one answer


class InferenceShown(Struct, frozen=True, kw_only=True):
    """An artifact as `infer show`, `account`, `requests` tell it, and its links as the rule derives them now."""

    run_path: str
    show: ShowReport
    account: AccountReport
    joins: RequestsReport
    links: dict[str, LinkCounts]


class Drawn(Struct, frozen=True):
    """The events of one request that have times, for the timeline of its page."""

    requests: tuple[Request, ...]
    stages: tuple[Stage, ...]
    iterations: dict[Ref, Iteration]


class InferenceEvidence:
    """Reads artifacts of the runs of a library; pages ask from several threads.

    Every method raises RequestError, Refused: `no_such_page`, also where the run has no artifact; EvidenceError and
    HostError, Refused: as opening the run and as reading the artifact.
    """

    def __init__(self, library: Library) -> None:
        self._library = library
        self._lock = threading.Lock()
        self._known: OrderedDict[str, tuple[Stamp, InferenceShown]] = OrderedDict()

    def shown(self, key: str) -> InferenceShown:
        """Return the summary; read again only after the artifact has changed."""
        with self._artifact(key) as (run_path, artifact), self._lock:
            stamp = stamp_of(artifact)
            known = self._known.get(key)
            if known is None or known[0] != stamp:
                known = (stamp, _read(artifact, run_path))
                self._known[key] = known
                while len(self._known) > KEPT:
                    self._known.popitem(last=False)
            self._known.move_to_end(key)
            return known[1]

    def requests(self, key: str, *, offset: int) -> RequestLines:
        """Return a stretch of the requests."""
        with self._artifact(key) as (_, artifact):
            return request_lines(Events(place_of(artifact)), offset=offset, limit=REQUESTS)

    def request(self, key: str, asked: str) -> ServedReport:
        """Return what is held of a request.

        Raises:
            RequestError: Refused, `no_such_request`.
        """
        with self._artifact(key) as (_, artifact):
            return served_request(artifact, asked)

    def drawn(self, key: str, served: ServedReport) -> Drawn:
        """Return the events of a request's parties, stages and iterations."""
        requests = {one.request for one in served.requests}
        stages = {one.stage for one in served.stages}
        iterations = {one.iteration for one in served.iterations}
        found: tuple[list[Request], list[Stage], dict[Ref, Iteration]] = ([], [], {})
        with self._artifact(key) as (_, artifact):
            for event in Events(place_of(artifact)):
                match event:
                    case Request() if event.request_ref in requests:
                        found[0].append(event)
                    case Stage() if event.stage_ref in stages:
                        found[1].append(event)
                    case Iteration() if event.iteration_ref in iterations:
                        found[2].setdefault(event.iteration_ref, event)
                    case _:
                        pass
        return Drawn(tuple(found[0]), tuple(found[1]), found[2])

    def events(self, key: str, wanted: Wanted, *, offset: int, limit: int) -> EventLines:
        """Return a stretch of the lines behind a figure."""
        with self._artifact(key) as (_, artifact):
            return event_lines(Events(place_of(artifact)), wanted, offset=offset, limit=limit)

    @contextmanager
    def _artifact(self, key: str) -> Generator[tuple[str, Path]]:
        with self._library.run(key) as run:
            artifact = run.folder / ARTIFACT_NAME
            if not LOCAL.exists(artifact):
                raise RequestError(
                    f"{run.path} holds no inference evidence",
                    code="no_such_page",
                    fix="make some: `paritrace infer init RUN`, then import or append to it",
                )
            yield str(run.path), artifact


def _read(artifact: Path, run_path: str) -> InferenceShown:
    events = Events(place_of(artifact))
    return InferenceShown(
        run_path=run_path,
        show=show_artifact(artifact),
        account=account_artifact(artifact),
        joins=requests_of(artifact),
        links=derived_counts(events, tables=LinkTables(events)),
    )
