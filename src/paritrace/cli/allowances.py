"""The exit status of what was found: `--exit-code`, `--allow undetermined[=N]`, `--exit-zero` (SU-3): pure rules."""

from collections.abc import Callable
from typing import Any, TypeVar

import click
from msgspec import Struct

from paritrace.cli.output import ExitStatus, worst
from paritrace.compare.checks_result import Checked, Outcome
from paritrace.compare.result import Comparison, Mark
from paritrace.errors import RequestError

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

AROUND = frozenset({"code", "config"})  # changes around the runs: shown, and no difference of what was computed
UNLIMITED = -1


class Judgement(Struct, frozen=True):
    """What the user asked the exit status to say. `allowed`: undetermined calls that are accepted; UNLIMITED: any."""

    exit_code: bool
    exit_zero: bool
    allowed: int = 0

    def allows(self, number: int) -> bool:
        return self.allowed == UNLIMITED or number <= self.allowed


def judgement_options(decorated: Decorated) -> Decorated:
    """`--exit-code`, `--allow` and `--exit-zero`."""
    for option in (
        click.option("--exit-zero", is_flag=True, help="End with 0 whatever was found; errors still end with 2."),
        click.option("--allow", metavar="undetermined[=N]", help="With --exit-code: accept what is undetermined."),
        click.option("--exit-code", is_flag=True, help="End with 1 on a difference, 3 when evidence is incomplete."),
    ):
        decorated = option(decorated)
    return decorated


def judgement(*, exit_code: bool, allow: str | None, exit_zero: bool) -> Judgement:
    """Return what the three options ask for.

    Raises:
        RequestError: Refused, `bad_allowance`.
    """
    return Judgement(exit_code=exit_code, exit_zero=exit_zero, allowed=0 if allow is None else _allowed(allow))


def _allowed(text: str) -> int:
    word, equals, number = text.partition("=")
    if word == "undetermined" and not equals:
        return UNLIMITED
    if word == "undetermined" and number.isascii() and number.isdigit():
        return int(number)
    raise RequestError(
        f"--allow {text!r} is not understood",
        code="bad_allowance",
        fix="give --allow undetermined, or with a number --allow undetermined=20",
    )


def status_of_comparison(comparison: Comparison, asked: Judgement, /) -> ExitStatus:
    """Return 1 for a difference, 3 for incomplete evidence, else 0; always 0 unless `--exit-code` was given."""
    if not asked.exit_code or asked.exit_zero:
        return ExitStatus.DONE
    return worst(
        ExitStatus.DIFFERENCE if differs(comparison) else ExitStatus.DONE,
        ExitStatus.DONE if is_complete(comparison, asked) else ExitStatus.UNDETERMINED,
    )


def differs(comparison: Comparison, /) -> bool:
    """Say whether anything that was computed differs."""
    return bool(
        comparison.counts.different
        or comparison.findings
        or comparison.outside
        or any(mark is Mark.BEYOND for rung, mark in comparison.ladder.items() if rung not in AROUND)
    )


def is_complete(comparison: Comparison, asked: Judgement, /) -> bool:
    """Say whether everything was compared, as far as the user wants it."""
    counts = comparison.counts
    undetermined = counts.undetermined_baseline + counts.undetermined_candidate + counts.incomparable
    return (
        asked.allows(undetermined)
        and not comparison.ranks_missing
        and bool(comparison.ranks_compared)
        and all(coverage.complete for coverage in comparison.coverage.values())
    )


def status_of_check(checked: Checked, asked: Judgement, /) -> ExitStatus:
    """Return 1 for a failure, 3 for what could not be checked, else 0; always 0 unless `--exit-code` was given."""
    if not asked.exit_code or asked.exit_zero:
        return ExitStatus.DONE
    unknown = checked.counts.get(Outcome.NOT_CHECKABLE, 0)
    return worst(
        ExitStatus.DIFFERENCE if checked.counts.get(Outcome.FAIL, 0) else ExitStatus.DONE,
        ExitStatus.DONE if asked.allows(unknown) else ExitStatus.UNDETERMINED,
    )
