"""At most three commands that would tell more, with what each is estimated to take (CP-29)."""

import shlex
from collections.abc import Iterator

from msgspec import Struct

from paritrace.compare.result import Comparison, Difference
from paritrace.reports.harmless import shorten, width_of
from paritrace.reports.layout import CONTENT, Section

MOST = 3
COMPARE_CALLS_PER_SECOND = 20_000  # both sides, one core; a deliberately low round figure
READING_SECONDS = 1  # start of the interpreter and one look into a kept result
COMMAND_COLUMNS = 52


class NextCommand(Struct, frozen=True):
    command: str
    purpose: str
    cost: str


def section(
    comparison: Comparison, /, *, kept: bool, judge_seconds: int | None = None, narrow_seconds: int | None = None
) -> Section:
    """Returns the commands worth the next minute; `kept` says that explain and why-not find the result.

    `judge_seconds`, `narrow_seconds`: what `judge` and `narrow` take; None where they cannot be done.
    """
    commands = commands_of(comparison, kept=kept, costs=(judge_seconds, narrow_seconds))
    return Section(anchor="next", lines=tuple(_line(command) for command in commands), keep=MOST, spaced=True)


def commands_of(
    comparison: Comparison, /, *, kept: bool, costs: tuple[int | None, int | None], columns: int = COMMAND_COLUMNS
) -> list[NextCommand]:
    """Returns the first of them; a command with paths that is longer than `columns` names BASE and CAND instead.

    `costs`: what `judge` and `narrow` take in seconds; None where they cannot be done.
    """
    return list(_candidates(comparison, kept=kept, costs=costs, columns=columns))[:MOST]


def _line(command: NextCommand) -> str:
    shown = shorten(command.command, width=COMMAND_COLUMNS)
    padded = shown + " " * (COMMAND_COLUMNS - width_of(shown))
    return shorten(f"{padded}  {command.purpose} ({command.cost})", width=CONTENT)


def _candidates(
    comparison: Comparison, *, kept: bool, costs: tuple[int | None, int | None], columns: int
) -> Iterator[NextCommand]:
    judge_seconds, narrow_seconds = costs
    if kept and comparison.findings:
        identity = comparison.findings[0].id
        yield NextCommand(f"paritrace explain {identity}", "records and files", _seconds(READING_SECONDS))
        if judge_seconds is not None:
            yield NextCommand(f"paritrace judge {identity}", "against float64", _seconds(judge_seconds))
    if kept and comparison.recorded_on_one_side:
        call = comparison.recorded_on_one_side[0]
        yield NextCommand(
            f"paritrace why-not {call.side}:{call.record_id}", "why it is unpaired", _seconds(READING_SECONDS)
        )
    first = comparison.first_difference
    by_operator = first is not None and "op" not in comparison.levels_compared
    if by_operator and narrow_seconds is not None:
        yield _narrow(comparison, seconds=narrow_seconds, columns=columns)
    elif first is not None and by_operator:
        yield NextCommand(
            f"paritrace run --level op --steps {_from_step(comparison, first)}:{first.step + 1} …",
            "both again, by operator",
            "two runs",
        )
    if first is not None and len(comparison.steps_compared) > 1:
        yield _narrower_compare(comparison, step=first.step, columns=columns)
    if kept and not comparison.findings:
        yield NextCommand("paritrace explain not_seen", "what was not checked", _seconds(READING_SECONDS))
    yield NextCommand(
        _check(comparison, columns=columns), "one run against itself", _seconds(_compare_seconds(comparison) // 2)
    )


def _narrow(comparison: Comparison, *, seconds: int, columns: int) -> NextCommand:
    runs = f"{shlex.quote(comparison.baseline.path)} {shlex.quote(comparison.candidate.path)}"
    command = f"paritrace narrow {runs}"
    shown = command if width_of(command) <= columns else "paritrace narrow BASE CAND"
    return NextCommand(shown, "to the operator", _seconds(seconds))


def _from_step(comparison: Comparison, first: Difference) -> int:
    """The step that made the difference, which may be the one before it shows."""
    return min(comparison.ladder_step, first.step)


def _narrower_compare(comparison: Comparison, *, step: int, columns: int) -> NextCommand:
    runs = f"{shlex.quote(comparison.baseline.path)} {shlex.quote(comparison.candidate.path)}"
    command = f"paritrace compare {runs} --steps {step}:{step + 1}"
    if width_of(command) > columns:
        command = f"paritrace compare BASE CAND --steps {step}:{step + 1}"
    seconds = _compare_seconds(comparison) // len(comparison.steps_compared)
    return NextCommand(command, "this step alone", _seconds(seconds))


def _check(comparison: Comparison, *, columns: int) -> str:
    command = f"paritrace check {shlex.quote(comparison.candidate.path)}"
    return command if width_of(command) <= columns else "paritrace check CAND"


def _compare_seconds(comparison: Comparison) -> int:
    calls = comparison.counts.calls_baseline + comparison.counts.calls_candidate
    return calls // COMPARE_CALLS_PER_SECOND


def _seconds(seconds: int) -> str:
    return f"~{max(seconds, READING_SECONDS)} s"
