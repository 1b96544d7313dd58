"""Figures of attempts in words: what is not all there never looks as if it were (P1, AT-9)."""

from collections.abc import Mapping

from paritrace.attempts.details import evaluator_name
from paritrace.attempts.figures import Sum
from paritrace.attempts.result import Fractions, OfConfiguration, OfEvaluator, PairOf
from paritrace.attempts.statistics.durations import Incidence
from paritrace.attempts.statistics.records import Absent, Estimate, TestResult
from paritrace.evidence.coverage import CoverageState, in_words
from paritrace.evidence.gaps import Gap
from paritrace.reports.harmless import harmless
from paritrace.reports.wording import count
from paritrace.statistics.records import Interval

TOKEN_NAMES = {
    "input_tokens": "input tokens",
    "cached_input_tokens": "  read from a cache",
    "cache_write_input_tokens": "  written to a cache",
    "output_tokens": "output tokens",
    "reasoning_tokens": "  reasoning",
}


def sum_in_words(found: Sum, *, unit: str = "") -> str:
    """Returns a sum with its coverage; `>=` where it is not all, `to` where only bounds are known."""
    covered = f"({in_words(found.coverage)}{_gaps(found)})"
    after = f" {unit}" if unit else ""
    if found.state is CoverageState.COMPLETE:
        return f"{number(found.observed_sum)}{after} {covered}"
    if found.high is not None:
        return f"{number(found.low)} to {number(found.high)}{after} {covered}"
    if not found.coverage.observed and not found.low:
        return f"unknown {covered}"
    return f">= {number(found.low)}{after} {covered}"


def _gaps(found: Sum) -> str:
    return "".join(f"; {name} {count}" for name, count in found.coverage.gaps.items())


def number(value: float) -> str:
    """Returns a number for a person: whole ones with separators, others in six digits."""
    return f"{int(value):,}" if float(value).is_integer() else f"{value:,.6g}"


def counts(found: Mapping[str, int]) -> str:
    """Returns counts by name on one line."""
    return ", ".join(f"{harmless(name)} {count:,}" for name, count in found.items()) or "none"


def attempts_line(one: OfConfiguration) -> str:
    """Returns how many attempts were found of how many that were planned."""
    expected = one.attempts.expected
    if isinstance(expected, Gap):
        return f"{one.attempts.observed:,} found; the list is not declared complete ({expected.detail})"
    return f"{expected:,} planned, {one.attempts.observed:,} found ({one.attempts_state})"


def fractions_lines(found: Fractions | Absent) -> list[tuple[str, str]]:
    """Returns the three fractions, each with its denominator (AT-12)."""
    if isinstance(found, Absent):
        return [("pass fraction", gap_in_words(found))]
    lines = [
        ("evaluated only", _fraction(found.passes, found.num_evaluated)),
        ("missing as failed", _fraction(found.passes, found.num_attempts)),
    ]
    if found.worst_case is not None:
        low, high = found.worst_case
        lines.append(("worst-case bounds", f"[{low:.3f}, {high:.3f}] of {found.num_attempts:,}"))
    if isinstance(found.interval, Interval):
        lines.append(("interval", interval_in_words(found.interval)))
    return lines


def _fraction(passes: int, num: int) -> str:
    return f"{passes:,} of {num:,} = {passes / num:.3f}" if num else f"{passes:,} of 0: none"


def estimate_in_words(found: Estimate | Absent, *, signed: bool = False) -> str:
    """Returns an estimate with its standard error and interval, or why there is none."""
    if isinstance(found, Absent):
        return gap_in_words(found)
    error = found.standard_error
    told = "standard error " + (gap_in_words(error) if isinstance(error, Absent) else f"{error:.4f}")
    shown = f"{found.value:+.4f}" if signed else f"{found.value:.4f}"
    return f"{shown}, {told}; {interval_in_words(found.interval, signed=signed)}; {count(found.num_tasks, 'task')}"


def interval_in_words(found: Interval | Absent, *, signed: bool = False) -> str:
    """Returns an interval of the population of tasks, with level and method."""
    if isinstance(found, Absent):
        return f"interval {gap_in_words(found)}"
    sign = "+" if signed else ""
    return f"{found.level:.0%} in [{found.low:{sign}.3f}, {found.high:{sign}.3f}] ({found.method})"


def gap_in_words(gap: Absent) -> str:
    """Returns why a statistic is not there."""
    return f"not estimable: {gap.gap}" + (f" ({harmless(gap.detail)})" if gap.detail else "")


def pass_at_k_lines(judge: OfEvaluator) -> list[tuple[str, str]]:
    """Returns pass@k and pass^k with eligible and total tasks."""
    if isinstance(judge.pass_at_k, Absent):
        return [("pass@k, pass^k", gap_in_words(judge.pass_at_k))]
    lines: list[tuple[str, str]] = []
    for one in judge.pass_at_k:
        tasks = f"{one.num_eligible_tasks:,} of {count(one.num_tasks, 'task')}"
        lines.append((f"pass@{one.k}", f"{one.pass_at_k:.3f}; {interval_in_words(one.at_k_interval)}; {tasks}"))
        if one.k > 1:
            lines.append((f"pass^{one.k}", f"{one.pass_hat_k:.3f}; {interval_in_words(one.hat_k_interval)}; {tasks}"))
    return lines


def incidence_in_words(found: Incidence | Absent) -> str:
    """Returns the cumulative incidence of a pass, with what was censored and what competes."""
    if isinstance(found, Absent):
        return gap_in_words(found)
    counted = (
        f"{found.num_passes:,} passed, {found.num_fails:,} ended otherwise, {found.num_censored:,} timed out (censored)"
    )
    if not found.seconds:
        return f"0 ({counted})"
    return f"{found.incidence[-1]:.3f} by {number(found.seconds[-1])} s ({counted})"


def judge_title(judge: OfEvaluator) -> str:
    """Returns by whom outcomes are."""
    return f"outcomes by {harmless(evaluator_name(judge.evaluator))}"


def test_in_words(found: TestResult) -> str:
    """Returns a test by its name, with what it was computed over."""
    facts = ", ".join(_fact(name, value) for name, value in found.facts.items())
    seed = "" if found.seed is None else f", seed {found.seed}"
    holm = "" if found.p_holm is None or found.p_holm == found.p_value else f", after Holm {found.p_holm:.4f}"
    return f"p = {found.p_value:.4f}{holm} ({count(found.num, 'pair')}{', ' + facts if facts else ''}{seed})"


def _fact(name: str, value: float) -> str:
    """A yes or no is a word: a test is `exact`, or is not."""
    match name:
        case "exact":
            return "exact" if value else "not exact"
        case "num_flips":
            return f"{number(value)} flips"
        case _:
            return f"{name} {number(value)}"


def claim_line(pair: PairOf) -> str:
    """Returns the rung of the ladder, and whether it was declared before results were read."""
    return f"claim: {pair.claim}" + (" (exploratory)" if pair.exploratory else "")


def difference_title(pair: PairOf) -> str:
    """Returns what is subtracted from what."""
    return f"{harmless(pair.baseline)} - {harmless(pair.candidate)}"
