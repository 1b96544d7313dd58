"""SWE-bench run reports (schema_version 2) as attempts; what is expected is the data set of the report (AT-16).

The report says of every instance whether it was submitted, completed, resolved. It counts no tokens and no money.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from paritrace.attempts.gaps import AttemptGap, Noted
from paritrace.attempts.importers.collecting import Collecting, Named, recorded, typed
from paritrace.attempts.importers.reading import Document, Evidence
from paritrace.attempts.manifest import (
    Attempt,
    Configuration,
    Evaluation,
    Evaluator,
    Execution,
    Relation,
    Stop,
    StopKind,
    VerdictKind,
)
from paritrace.attempts.origins import Origin
from paritrace.evidence.plain_json import Refusal, members

MOST_NAMED = 5
EVALUATOR = "swe-bench harness"


class Report(Struct, frozen=True):
    """The parts of a report that are read. `infra_failure_ids` and `ambiguous_failure_ids` came with version 5."""

    submitted_ids: list[str] = []
    completed_ids: list[str] = []
    incomplete_ids: list[str] = []
    empty_patch_ids: list[str] = []
    resolved_ids: list[str] = []
    unresolved_ids: list[str] = []
    error_ids: list[str] = []
    infra_failure_ids: list[str] = []
    ambiguous_failure_ids: list[str] = []
    failure_reasons: dict[str, str] = {}
    total_instances: int | None = None
    schema_version: int | None = None


def is_report(value: object) -> bool:
    """Says whether a parsed document looks like a run report with its lists."""
    return {"resolved_ids", "submitted_ids"} <= members(value).keys()


def collect(named: Named, collecting: Collecting) -> None:
    """Adds the report that was named, or every report of the folder that was named, as one configuration."""
    evidence = collecting.evidence
    attempts: list[Attempt] = []
    reports: list[tuple[Report, Origin]] = []
    for document in _documents(evidence.root(named.path), evidence):
        origin = Origin(source=document.source)
        report = typed(document.value, Report, evidence, origin)
        if report is None:
            continue
        reports.append((report, origin))
        if elsewhere := _elsewhere(report):
            names = ", ".join(sorted(elsewhere)[:MOST_NAMED])
            told = f"{len(elsewhere):,} predicted that its data set does not have, counted nowhere: {names}"
            evidence.note(Refusal(path=origin.source, line=0, detail=told), origin)
        attempts += _attempts(report, document, origin, configuration=named.configuration)
    if reports:
        collecting.add(_configuration(reports, named.configuration), attempts)


def _documents(path: Path, evidence: Evidence) -> Iterator[Document]:
    files = [path] if path.is_file() else [entry for entry in evidence.files(path) if entry.suffix == ".json"]
    for file in files:
        document = evidence.json(file)
        if document is None or document.value is None:
            continue
        if is_report(document.value):
            yield document
        elif path.is_file():
            evidence.refuse(file, "not a SWE-bench run report: it has no `resolved_ids` and `submitted_ids`")


def _configuration(reports: list[tuple[Report, Origin]], name: str) -> Configuration:
    first, origin = reports[0]
    return Configuration(
        id=name,
        attempts_complete=all(_whole(report) for report, _ in reports),
        relation=Relation.INDEPENDENT if len(reports) > 1 else Relation.UNKNOWN,
        fields={"report_schema": recorded(first.schema_version), "model": None, "harness_version": None},
        gaps=tuple(gap for report, place in reports for gap in _gaps(report, place)),
        origin=origin,
    )


def _whole(report: Report) -> bool:
    return report.total_instances is not None and len(_instances(report)) == report.total_instances


def _elsewhere(report: Report) -> set[str]:
    """Returns the predictions of instances that the data set of the run does not have: the report puts every instance
    that it has into one of its other lists too."""
    placed = {one for name in _PLACED for one in getattr(report, name)}
    return set(report.submitted_ids) - placed if len(placed) == report.total_instances else set()


def _gaps(report: Report, origin: Origin) -> Iterable[Noted]:
    if not _whole(report):
        total = "does not say" if report.total_instances is None else f"says {report.total_instances:,}"
        yield Noted(
            reason=AttemptGap.ATTEMPT_LIST_UNVERIFIED,
            detail=f"the report names {len(_instances(report)):,} instances and {total} how many there are",
            origin=Origin(source=origin.source, pointer="/total_instances"),
        )


def _instances(report: Report) -> list[str]:
    """Returns every instance of the run's data set that the report names: submitted or not."""
    named = {*report.submitted_ids, *(one for name in _PLACED for one in getattr(report, name))}
    return sorted(named - _elsewhere(report))


def _attempts(report: Report, document: Document, origin: Origin, *, configuration: str) -> Iterable[Attempt]:
    lists = {name: set(getattr(report, name)) for name in _LISTS}
    for instance in _instances(report):
        place = next((name for name in _LISTS if instance in lists[name]), "submitted_ids")
        submitted = instance in report.submitted_ids or place != "incomplete_ids"
        yield Attempt(
            attempt_id=f"{document.sha256[:12]}/{instance}",
            configuration_id=configuration,
            task_id=instance,
            task_revision="unknown",
            present=submitted,
            execution=Execution.UNKNOWN,
            stop=_stop(place, report.failure_reasons.get(instance, ""), _at(origin, place)),
            evaluations=tuple(_evaluations(place, _at(origin, place))),
            content_sha256=document.sha256,
            gaps=() if submitted else (Noted(reason=AttemptGap.RESULT_MISSING, origin=_at(origin, place)),),
            origin=_at(origin, place),
        )


_PLACED = ("completed_ids", "incomplete_ids", "empty_patch_ids", "error_ids")
_LISTS = (  # what says most of an instance comes first: an ambiguous failure also stands among the unresolved
    "infra_failure_ids",
    "ambiguous_failure_ids",
    "error_ids",
    "resolved_ids",
    "unresolved_ids",
    "empty_patch_ids",
    "incomplete_ids",
)


def _evaluations(place: str, origin: Origin) -> Iterable[Evaluation]:
    verdict = {
        "resolved_ids": VerdictKind.PASS,
        "unresolved_ids": VerdictKind.FAIL,
        "error_ids": VerdictKind.ERROR,
        "infra_failure_ids": VerdictKind.ERROR,
        "ambiguous_failure_ids": VerdictKind.ERROR,
    }.get(place)
    if verdict is not None:
        yield Evaluation(evaluator=Evaluator(id=EVALUATOR), verdict=verdict, origin=origin)


def _stop(place: str, reason: str, origin: Origin) -> Stop:
    word = {"empty_patch_ids": "empty patch", "incomplete_ids": "no prediction"}.get(place, reason)
    return Stop(kind=StopKind.UNKNOWN, word=word, origin=origin) if word else Stop()


def _at(origin: Origin, name: str) -> Origin:
    return Origin(source=origin.source, pointer=f"/{name}")
