"""A check as Markdown for a pull request: what fails, what is unknown, what holds; the rest is counted (SU-7)."""

from collections.abc import Iterator, Sequence

from paritrace.compare.checks_result import Checked, Invariant, Outcome
from paritrace.reports.check_screen import statement
from paritrace.reports.check_story import in_order
from paritrace.reports.formats import OfCheck, Sink
from paritrace.reports.markdown.spelling import code, plain, table

MOST = 40
FACTS = 2


def write(given: OfCheck, sink: Sink, /) -> None:
    """Writes the whole of it; the same result is always the same bytes."""
    sink.write(markdown(given.checked).encode())


def markdown(checked: Checked, /) -> str:
    """Returns the text: what is so in a sentence, then a table for each outcome that somebody must look at."""
    return "\n\n".join(part for part in _parts(checked) if part) + "\n"


def _parts(checked: Checked) -> Iterator[str]:
    yield f"### paritrace check {code(checked.run.run_id)}"
    failed = in_order(one for one in checked.invariants if one.status is Outcome.FAIL)
    sentence, strength = statement(checked, failed=failed)
    yield f"**check** · {plain(sentence, longest=2000)}"
    yield f"*Strength:* {plain(strength, longest=1000)}"
    for title, outcome in (("fails", Outcome.FAIL), ("could not be checked", Outcome.NOT_CHECKABLE)):
        yield _table(title, in_order(one for one in checked.invariants if one.status is outcome))
    held = sorted({one.id for one in checked.invariants if one.status is Outcome.PASS})
    if held:
        yield f"**Holds** · {', '.join(map(code, held))}"
    yield "\n".join(f"- {plain(limit)}" for limit in checked.limits)


def _table(title: str, found: Sequence[Invariant]) -> str:
    if not found:
        return ""
    rows = [
        (code(one.id), _at(one), plain(one.evidence.reason or one.name), "; ".join(_facts(one))) for one in found[:MOST]
    ]
    more = f"\n\n{len(found) - MOST:,} more: `paritrace check … --json` lists all" if len(found) > MOST else ""
    return f"{table((title, 'where', 'what should hold, or why not', 'evidence'), rows)}{more}"


def _at(one: Invariant) -> str:
    rank = f"rank {one.rank}" if one.rank >= 0 else "all ranks"
    step = f", step {one.step}" if one.step >= 0 else ""
    line = f", {code(f'{one.evidence.file}:{one.evidence.line}')}" if one.evidence.file else ""
    return f"{rank}{step}{line}"


def _facts(one: Invariant) -> list[str]:
    return [plain(fact) for fact in one.evidence.facts[:FACTS]]
