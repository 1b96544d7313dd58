"""The exit status of what was found: `--exit-code`, `--allow`, `--exit-zero`, a policy (SU-3, CP-13): pure rules."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click
from msgspec import Struct

from paritrace.cli.output import ExitStatus, worst
from paritrace.compare.checks_result import Checked, Outcome
from paritrace.compare.differing import differs
from paritrace.compare.joined_outcomes import resume_apart, resume_unknown, rows_apart, rows_unknown
from paritrace.compare.policy import Verdict
from paritrace.compare.result import AROUND_RUNGS, Comparison, Finding, Mark
from paritrace.errors import RequestError
from paritrace.reports.formats import UNLIMITED, Allowed
from paritrace.reports.leading import is_rows

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

INSIDE_ENVELOPE = "inside-envelope"
STATES = frozenset({"data", "weights", "rng"})  # rungs of what a step begins with


class Judgement(Struct, frozen=True):
    """What the user asked the exit status to say. `allowed`: undetermined calls that are accepted; UNLIMITED: any.

    `inside_envelope`: what an envelope explains is no difference.
    """

    exit_code: bool
    exit_zero: bool
    allowed: int = 0
    inside_envelope: bool = False

    def allows(self, number: int) -> bool:
        return self.allowed == UNLIMITED or number <= self.allowed


def judgement_options(decorated: Decorated) -> Decorated:
    """`--exit-code`, `--allow` and `--exit-zero`."""
    for option in (
        click.option("--exit-zero", is_flag=True, help="End with 0 whatever was found; errors still end with 2."),
        click.option(
            "--allow",
            multiple=True,
            metavar="WHAT",
            help="With --exit-code: accept undetermined[=N] calls; of compare also what lies inside-envelope.",
        ),
        click.option("--exit-code", is_flag=True, help="End with 1 on a difference, 3 when evidence is incomplete."),
    ):
        decorated = option(decorated)
    return decorated


def judgement(*, exit_code: bool, allow: Sequence[str], exit_zero: bool, envelope: bool = False) -> Judgement:
    """Return what the three options ask for; `envelope`: the command knows envelopes.

    Raises:
        RequestError: Refused, `bad_allowance`.
    """
    inside = envelope and INSIDE_ENVELOPE in allow
    numbers = [_allowed(text, envelope=envelope) for text in allow if not (inside and text == INSIDE_ENVELOPE)]
    allowed = UNLIMITED if UNLIMITED in numbers else max(numbers, default=0)
    return Judgement(exit_code=exit_code, exit_zero=exit_zero, allowed=allowed, inside_envelope=inside)


def _allowed(text: str, *, envelope: bool) -> int:
    word, equals, number = text.partition("=")
    if word == "undetermined" and not equals:
        return UNLIMITED
    if word == "undetermined" and number.isascii() and number.isdigit():
        return int(number)
    raise RequestError(
        f"--allow {text!r} is not understood",
        code="bad_allowance",
        fix="give --allow undetermined, with a number --allow undetermined=20"
        + (f", or --allow {INSIDE_ENVELOPE}" if envelope else ""),
    )


def allowed_by(asked: Judgement, /) -> Allowed:
    """Return what reports are to take as accepted."""
    return Allowed(undetermined=asked.allowed, inside_envelope=asked.inside_envelope)


_OF_VERDICT = {
    Verdict.PASS: ExitStatus.DONE,
    Verdict.FAIL: ExitStatus.DIFFERENCE,
    Verdict.UNDETERMINED: ExitStatus.UNDETERMINED,
}


def status_of_comparison(comparison: Comparison, asked: Judgement, /) -> ExitStatus:
    """Return 1 for a difference, 3 for incomplete evidence, else 0; always 0 unless `--exit-code` was given.

    With a policy its verdict decides alone: 1 for fail, 3 for undetermined, 0 for pass.
    """
    if not asked.exit_code or asked.exit_zero:
        return ExitStatus.DONE
    if comparison.policy is not None:
        return _OF_VERDICT[comparison.policy.verdict]
    if is_rows(comparison):
        differ, complete = _by_rows(comparison, asked)
    else:
        unjudged = asked.inside_envelope and differs(comparison) and not is_judged(comparison)
        complete = is_complete(comparison, asked) and not unjudged
        differ = differs_beyond(comparison) if asked.inside_envelope else differs(comparison)
    return worst(
        ExitStatus.DIFFERENCE if differ else ExitStatus.DONE,
        ExitStatus.DONE if complete else ExitStatus.UNDETERMINED,
    )


def _by_rows(comparison: Comparison, asked: Judgement) -> tuple[bool, bool]:
    """Whether runs with unlike batches differ, and whether that is known: rows of tokens say so, calls got other input.

    Weights that differ are a difference of what was computed with, whatever the batches are.
    """
    rows, inside = comparison.token_rows, asked.inside_envelope
    differ = rows_apart(rows, inside=inside) or comparison.ladder.get("weights") is Mark.BEYOND
    whole = all(coverage.complete for coverage in comparison.coverage.values())
    return differ, whole and asked.allows(rows_unknown(rows, inside=inside))


def is_judged(comparison: Comparison, /) -> bool:
    """Say whether an envelope judged what differs: there is one, and no finding is left that it does not speak of."""
    envelope = comparison.envelope
    findings = (finding for finding in comparison.findings if not finding.place.collective)
    if comparison.token_rows is not None and comparison.token_rows.differ and not comparison.token_rows.judged:
        return False
    return envelope is not None and bool(envelope.judged) and all(finding.ratio is not None for finding in findings)


def differs_beyond(comparison: Comparison, /) -> bool:
    """Say whether something differs that no envelope explains: beyond it, read from outside, or done collectively."""
    return bool(
        comparison.outside
        or (comparison.envelope is not None and comparison.envelope.beyond)
        or rows_apart(comparison.token_rows, inside=True)
        or resume_apart(comparison.resume)
        or any(finding.place.collective or _is_beyond(finding) for finding in comparison.findings)
        or any(mark is Mark.BEYOND for mark in _judged_rungs(comparison))
    )


def _is_beyond(finding: Finding) -> bool:
    return finding.ratio is not None and finding.reached is not None and finding.ratio > finding.reached


def _judged_rungs(comparison: Comparison) -> list[Mark]:
    """The marks of what was computed; without an envelope `X` says of calls only that bits differ."""
    wanted = STATES if comparison.envelope is None else frozenset(comparison.ladder) - AROUND_RUNGS
    return [mark for rung, mark in comparison.ladder.items() if rung in wanted]


def is_complete(comparison: Comparison, asked: Judgement, /) -> bool:
    """Say whether everything was compared, as far as the user wants it."""
    counts = comparison.counts
    undetermined = counts.undetermined_baseline + counts.undetermined_candidate + counts.incomparable
    undetermined += rows_unknown(comparison.token_rows) + resume_unknown(comparison.resume)
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
