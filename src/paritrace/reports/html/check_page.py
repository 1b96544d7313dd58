"""Makes the page of a check from the same rules and words as its screen (CP-25, SU-10)."""

import shlex
from collections.abc import Iterable

from paritrace.compare.checks_result import Checked, Ends, Invariant, Outcome
from paritrace.reports.check_screen import MARKS, coverage_texts, failing, remarks_of, statement
from paritrace.reports.check_story import in_order
from paritrace.reports.html.page import CallRef, Command, Figure, RunPart
from paritrace.reports.html.pages import CheckGroup, CheckPage, InvariantRow
from paritrace.runs.attendance import in_words
from paritrace.runs.record_words import Told, told_of

MOST_ROWS = 300
MOST_CALLS = 5
MOST_NAMES = 50
MOST_RECORDS = 100
TITLES = {
    Outcome.FAIL: ("fails", "Fails"),
    Outcome.NOT_CHECKABLE: ("unknown", "Could not be checked"),
    Outcome.PASS: ("holds", "Holds"),
    Outcome.NOT_APPLICABLE: ("n/a", "Does not apply"),
}
LABELS = {
    Outcome.FAIL: "fail",
    Outcome.NOT_CHECKABLE: "not checkable",
    Outcome.PASS: "hold",
    Outcome.NOT_APPLICABLE: "do not apply",
}


def _ends(ends: Ends | None) -> tuple[Told, ...]:
    if ends is None:
        return ()
    shown = ends.records[:MOST_RECORDS]
    left = len(ends.records) - len(shown) + ends.num_left_out
    return told_of((one.words or (f"record {one.record}",) for one in shown), num_left_out=left, death=ends.death)


def check_page(checked: Checked, /) -> CheckPage:
    """Returns every word and number of the page."""
    failed = in_order(one for one in checked.invariants if one.status is Outcome.FAIL)
    sentence, strength = statement(checked, failed=failed)
    return CheckPage(
        sentence=sentence,
        strength=strength,
        run=RunPart("run", checked.run.run_id, checked.run.path, checked.run.digest),
        counts=tuple(
            Figure(TITLES[status][0], label, checked.counts.get(status.value, 0)) for status, label in LABELS.items()
        ),
        groups=tuple(group for status in TITLES if (group := _group(checked, status, failed)).rows),
        ends=_ends(checked.ends),
        coverage=tuple(coverage_texts(checked)),
        attendance=tuple(words for one in checked.ranks for words in in_words(one)),
        remarks=tuple(remarks_of(checked)),
        limits=checked.limits,
        commands=_commands(checked),
    )


def _group(checked: Checked, status: Outcome, failed: list[Invariant]) -> CheckGroup:
    found = failed if status is Outcome.FAIL else [one for one in checked.invariants if one.status is status]
    anchor, title = TITLES[status]
    return CheckGroup(anchor, title, tuple(_rows(found[:MOST_ROWS])), max(0, len(found) - MOST_ROWS))


def _rows(found: Iterable[Invariant]) -> Iterable[InvariantRow]:
    for number, one in enumerate(found, 1):
        evidence = one.evidence
        yield InvariantRow(
            anchor=f"{one.status.value}-{number}",
            id=one.id,
            status=one.status.value,
            glyph=MARKS[one.status],
            said=failing(one) if one.status is Outcome.FAIL else one.name,
            where=_where(one),
            file=evidence.file,
            line=evidence.line,
            facts=(*evidence.facts, *([f"in {evidence.module}"] if evidence.module else [])),
            names=evidence.names[:MOST_NAMES],
            total=evidence.total,
            reason=evidence.reason,
            calls=tuple(CallRef("run", one.rank, number) for number in evidence.record_ids[:MOST_CALLS]),
        )


def _where(one: Invariant) -> str:
    parts = [f"rank {one.rank}"] if one.rank >= 0 else []
    return ", ".join([*parts, *([f"step {one.step}"] if one.step >= 0 else [])])


def _commands(checked: Checked) -> tuple[Command, ...]:
    path = shlex.quote(checked.run.path)
    return (
        Command(f"paritrace check {path} --json", "every invariant with all of its evidence", "~1 s"),
        Command(f"paritrace runs verify {path}", "whether its files are what was registered", "~1 s"),
    )
