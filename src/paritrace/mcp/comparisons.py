"""The tools about a kept comparison: its counts and findings, and the evidence behind a line of it (AU-12)."""

from msgspec import Struct

from paritrace.compare.result import (
    LADDER,
    Change,
    Comparison,
    Counts,
    Difference,
    EnvelopeUsed,
    Finding,
    RunRef,
    SideCoverage,
)
from paritrace.errors import ParitraceError
from paritrace.mcp.places import Places
from paritrace.mcp.questions import AskComparison, AskExplain
from paritrace.mcp.runs import Steps, steps_of
from paritrace.mcp.tables import checked_table, table_if_kept
from paritrace.mcp.telling import Listing, listed, listing, numbers
from paritrace.reports.calls_table import CallsTable
from paritrace.reports.explained import behind
from paritrace.reports.explanation import FileBehind, RecordLine
from paritrace.reports.explanation import explain as explain_result
from paritrace.reports.shelf import Result, key_of

OTHERS = ("folds", "ratios", "resume", "token_rows", "maps", "policy", "ledger", "review", "repeats")


class DifferenceTold(Struct, frozen=True):
    """Where a difference lies. `sites`: FILE:LINE of baseline and candidate with the line, where sources were kept."""

    rank: int
    step: int
    phase: str
    module: str
    function: str
    slot: str
    difference_class: str
    group: str
    baseline_id: str  # as explain takes it
    candidate_id: str
    baseline_site: str
    candidate_site: str
    slots: Listing[str]
    cause: str
    undetermined_before: int


class FindingTold(Struct, frozen=True):
    id: str
    sentence: str
    strength: str
    ranks: Listing[int]
    consequences: int
    place: DifferenceTold


class SideTold(Struct, frozen=True):
    """What one side recorded: `complete` only if expected steps were declared, seen, and nothing was lost."""

    complete: bool
    status: str
    steps: Steps
    expected_steps: int | None
    bytes_lost: int
    gaps: Listing[str]
    not_captured: Listing[str]
    remarks: Listing[str]


class Summary(Struct, frozen=True):
    """A kept comparison, counts first. `verdict` is "not_evaluated" unless a policy was given."""

    key: str
    path: str
    counts: Counts
    undetermined_baseline: Listing[str]  # calls without a partner, by reason
    undetermined_candidate: Listing[str]
    verdict: str
    findings: Listing[FindingTold]
    first_difference: DifferenceTold | None
    ladder_step: int
    ladder: dict[str, str]  # rung -> = agrees, ~ inside the envelope, X differs, ? undetermined, . not reached
    baseline: RunRef
    candidate: RunRef
    ranks_compared: Listing[int]
    ranks_missing: Listing[int]
    steps_compared: Steps
    levels_compared: Listing[str]
    coverage_baseline: SideTold | None
    coverage_candidate: SideTold | None
    changed: Listing[Change]
    collectives: Listing[str]
    outside: Listing[str]  # state that differed before any call read it
    recorded_on_one_side: int  # calls
    limits: Listing[str]  # what this comparison cannot say
    envelope: EnvelopeUsed | None  # what it was judged by; null: by nothing, so strengths say "bits only"
    not_shown: Listing[str]  # other parts of the document, which comparison.json holds
    calls_table: str  # empty: list_differences answers; else why it does not


class Explained(Struct, frozen=True):
    """What is behind a line or figure: `records` are the first of `total`; `how_counted` finds all of them."""

    id: str
    statement: str
    facts: Listing[str]
    records: Listing[RecordLine]
    how_counted: str
    files: Listing[FileBehind]


def summarize_comparison(places: Places, asked: AskComparison, /) -> Summary:
    found = places.result(asked.comparison)
    of = found.comparison
    return Summary(
        key=key_of(found.path),
        path=str(found.path),
        counts=of.counts,
        undetermined_baseline=numbers(of.undetermined_by_reason.get("baseline", {})),
        undetermined_candidate=numbers(of.undetermined_by_reason.get("candidate", {})),
        verdict=of.verdict,
        findings=listed(of.findings, _finding),
        first_difference=None if of.first_difference is None else _difference(of.first_difference),
        ladder_step=of.ladder_step,
        ladder={rung: of.ladder[rung].value for rung in LADDER if rung in of.ladder},
        baseline=of.baseline,
        candidate=of.candidate,
        ranks_compared=listing(of.ranks_compared),
        ranks_missing=listing(of.ranks_missing),
        steps_compared=steps_of(of.steps_compared),
        levels_compared=listing(of.levels_compared),
        coverage_baseline=_side(of.coverage.get("baseline")),
        coverage_candidate=_side(of.coverage.get("candidate")),
        changed=listing(of.changed),
        collectives=listed(of.collectives, lambda one: one.sentence),
        outside=listing(_outside(of)),
        recorded_on_one_side=sum(one.count for one in of.recorded_on_one_side),
        limits=listed(of.limits, lambda one: one.text),
        envelope=of.envelope,
        not_shown=listing([name for name in OTHERS if getattr(of, name)]),
        calls_table=_why_no_table(found, places),
    )


def explain(places: Places, asked: AskExplain, /) -> Explained:
    """The evidence behind an id; of a document that stands alone without its records.

    Raises:
        RequestError: Refused, `no_such_id`: names what can be explained.
    """
    found = places.result(asked.comparison)
    if found.kept is None:
        what = behind(found.comparison, asked.id)
        records: Listing[RecordLine] = listing((), total=len(what.record_ids))
        return Explained(asked.id, what.statement, listing(what.facts), records, "", listing(()))
    path = table_if_kept(found, files=places.files)
    table = None if path is None else CallsTable(path)
    of = explain_result(found.kept, asked.id, files=places.files, table=table)
    return Explained(
        of.id,
        of.statement,
        listing(of.facts),
        listing(of.records, total=of.total),
        of.how_counted,
        listing(of.files),
    )


def _why_no_table(found: Result, places: Places) -> str:
    try:
        checked_table(found, files=places.files)
    except ParitraceError as error:
        return f"{error.message}; {error.fix}"
    return ""


def identity(side: str, record_id: int, /) -> str:
    """Returns the id of a call as explain takes it; "" where a side has none."""
    return f"{side}:{record_id}" if record_id >= 0 else ""


def _finding(one: Finding) -> FindingTold:
    ranks = one.ranks or (one.place.rank,)
    return FindingTold(one.id, one.sentence, one.strength, listing(ranks), one.consequences, _difference(one.place))


def _difference(one: Difference) -> DifferenceTold:
    return DifferenceTold(
        rank=one.rank,
        step=one.step,
        phase=one.phase,
        module=one.module,
        function=one.function,
        slot=one.slot,
        difference_class=one.difference_class.value,
        group=one.group.value,
        baseline_id=identity("baseline", one.baseline_record_id),
        candidate_id=identity("candidate", one.candidate_record_id),
        baseline_site=_site(one.baseline_site or f"{one.file}:{one.line}", one.baseline_source),
        candidate_site=_site(one.candidate_site or f"{one.file}:{one.line}", one.candidate_source),
        slots=listed(one.slots, lambda slot: f"{slot.slot}: {slot.baseline} -> {slot.candidate}"),
        cause=one.cause,
        undetermined_before=one.undetermined_before,
    )


def _site(site: str, source: str) -> str:
    return f"{site}: {source}" if source else site


def _side(one: SideCoverage | None) -> SideTold | None:
    if one is None:
        return None
    return SideTold(
        complete=one.complete,
        status=one.status,
        steps=steps_of(one.steps_seen),
        expected_steps=one.expected_steps,
        bytes_lost=one.bytes_lost,
        gaps=numbers(one.gaps),
        not_captured=listing(one.not_captured),
        remarks=listing((*one.remarks, *one.not_compared)),
    )


def _outside(of: Comparison) -> list[str]:
    return [
        f"rank {one.rank}, step {one.step}, {one.moment}: {one.group} {one.name}: {one.baseline} -> {one.candidate}"
        for one in of.outside
    ]
