"""What reports of attempts say, as titled lists of lines: one source for text, Markdown and HTML (AT-17)."""

from collections.abc import Iterator

from msgspec import Struct

from paritrace.attempts.accounts import PricingBasis
from paritrace.attempts.details import basis_name, evaluator_name
from paritrace.attempts.result import AttemptDetail, AttemptsComparison, OfConfiguration, PairOf, RuleOutcome, Summary
from paritrace.attempts.statistics.records import Absent, Estimate
from paritrace.reports.attempts.words import (
    TOKEN_NAMES,
    attempts_line,
    claim_line,
    counts,
    difference_title,
    estimate_in_words,
    fractions_lines,
    gap_in_words,
    incidence_in_words,
    interval_in_words,
    judge_title,
    number,
    pass_at_k_lines,
    sum_in_words,
    test_in_words,
)
from paritrace.reports.harmless import harmless
from paritrace.reports.wording import count
from paritrace.statistics.records import Interval

MOST_LISTED = 40  # tasks and attempts on one list; of more the number left out is said
MOST_DETAILS = 2000  # attempts in a report for people; --json has all


class Part(Struct, frozen=True):
    """A titled list: `rows` of a name and what is said of it; `notes` are whole sentences."""

    title: str
    rows: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    level: int = 2


def parts_of_summary(summary: Summary) -> Iterator[Part]:
    """Yields the parts of a summary: coverage first, then what was found, then warnings."""
    yield _head(summary)
    for one in summary.configurations:
        yield from _configuration(one)
    if summary.warnings:
        yield Part("warnings", notes=tuple(harmless(one.sentence) for one in summary.warnings))
    if summary.rules:
        yield _rules(summary.rules)
    if summary.details is not None:
        yield from _details(summary.details)


def parts_of_comparison(comparison: AttemptsComparison) -> Iterator[Part]:
    """Yields the parts of a comparison: what it claims, then both sides."""
    if not comparison.pairs:
        few = count(len(comparison.summary.configurations), "configuration")
        yield Part("nothing is compared", notes=(f"the manifest has {few}: a comparison needs two",), level=1)
    for pair in comparison.pairs:
        yield from _pair(pair, comparison.num_comparisons)
    if comparison.rules:
        yield _rules(comparison.rules)
    yield from parts_of_summary(comparison.summary)


def _head(summary: Summary) -> Part:
    told = "all evidence is there" if summary.complete else "incomplete: sums with >= are not totals"
    rows = [
        ("evidence", told),
        ("manifest", f"sha256 {summary.manifest_sha256}"),
        ("read by", f"paritrace {summary.paritrace}, SciPy {summary.scipy}"),
    ]
    if summary.importer:
        rows.insert(1, ("imported from", harmless(summary.importer)))
    noted = tuple(f"{one.reason} ({one.count}): {harmless(one.detail)}" for one in summary.noted)
    return Part(f"attempts of {count(len(summary.configurations), 'configuration')}", tuple(rows), noted, level=1)


def _configuration(one: OfConfiguration) -> Iterator[Part]:
    name = harmless(one.id)
    rows = [("attempts", attempts_line(one)), ("tasks", f"{one.num_tasks:,}")]
    if one.requests:
        rows.append(("requests", f"{counts(one.requests)} ({one.requests_state})"))
    if one.num_retried:
        rows.append(("tried again", f"{one.num_retried:,}: their spend counts, their outcome does not"))
    rows += [("stopped by", counts(one.stops)), ("executions", counts(one.executions))]
    if one.gaps:
        rows.append(("gaps", counts(one.gaps)))
    yield Part(name, tuple(rows))
    if not one.combined:
        yield Part(f"{name}: no combined pass fraction", _matrix(one), level=3)
    for judge in one.evaluators:
        found = [("states", counts(judge.states)), *fractions_lines(judge.fractions)]
        found.append(("mean over tasks", estimate_in_words(judge.mean_over_tasks)))
        found.append(("mean over attempts", estimate_in_words(judge.mean_over_attempts)))
        found += pass_at_k_lines(judge)
        found.append(("passed by a time", incidence_in_words(judge.time_to_pass)))
        yield Part(f"{name}: {judge_title(judge)}", tuple(found), level=3)
    yield _spend(one, name)
    yield _times(one, name)


def _matrix(one: OfConfiguration) -> tuple[tuple[str, str], ...]:
    return tuple(
        (
            harmless(f"{evaluator_name(cell.first)} / {evaluator_name(cell.second)}"),
            f"both judged {cell.num_both:,}, and agree on {cell.num_agree:,}",
        )
        for cell in one.matrix
    ) or (("evaluators", "no attempt was judged by two of them"),)


def _spend(one: OfConfiguration, name: str) -> Part:
    rows = [(TOKEN_NAMES[kind], sum_in_words(found)) for kind, found in one.tokens.items()]
    rows += [(f"inherited {kind}", sum_in_words(found)) for kind, found in one.inherited_tokens.items() if found.low]
    for cost in one.costs:
        rows += [("cost", sum_in_words(cost.sum, unit=cost.basis.currency)), ("  priced", _priced(cost.basis))]
        if isinstance(cost.per_attempt, Estimate):
            rows.append(("  an attempt", estimate_in_words(cost.per_attempt)))
    if not one.costs:
        rows.append(("cost", "unknown: no attempt has one"))
    if one.repriced is not None:
        basis = one.repriced.basis
        again = sum_in_words(one.repriced.sum, unit=basis.currency)
        rows += [("priced again", again), ("  priced", _priced(basis))]
    for per in one.cost_per_pass:
        least = ">= " if per.at_least else ""
        reach = f"; {interval_in_words(per.interval)}" if isinstance(per.interval, Interval) else ""
        rows.append(("cost per pass", f"{least}{number(per.amount)} {per.basis.currency}{reach}"))
    for total in one.reconciled:
        left = "not known" if total.unattributed is None else number(total.unattributed)
        rows.append((f"unattributed {total.figure}", f"{left} (the run's own total {number(total.total.low)})"))
    return Part(f"{name}: usage and cost", tuple(rows), level=3)


def _times(one: OfConfiguration, name: str) -> Part:
    times = one.durations
    return Part(
        f"{name}: times, in three scopes that are never combined",
        (
            ("task durations", sum_in_words(times.task_seconds, unit="s")),
            ("invocations", f"{times.num_invocations:,}, {times.num_overlapping:,} beside another of their attempt"),
            ("union, by attempt", sum_in_words(times.invocation_union_seconds, unit="s")),
            ("resource observations", f"{times.num_resources:,}, listed one by one in the details"),
        ),
        level=3,
    )


def _rules(rules: tuple[RuleOutcome, ...]) -> Part:
    return Part("rules", tuple((f"{one.verdict} {harmless(one.name)}", harmless(one.sentence)) for one in rules))


def _pair(pair: PairOf, num_comparisons: int) -> Iterator[Part]:
    low_high = pair.bounds
    if isinstance(low_high, Absent):
        bounds = gap_in_words(low_high)
    else:
        bounds = f"[{low_high[0]:+.3f}, {low_high[1]:+.3f}]: whatever the missing verdicts are"
    rows = [
        ("paired difference", estimate_in_words(pair.difference, signed=True)),
        ("bounds, these attempts", bounds),
        ("worst-case completion", interval_in_words(pair.worst_case_interval, signed=True)),
        ("valid at every look", interval_in_words(pair.anytime_interval, signed=True)),
    ]
    rows += [(test.name, test_in_words(test)) for test in pair.tests]
    if num_comparisons > 1:
        rows.append(("comparisons", f"{num_comparisons}: p values are adjusted over them (Holm)"))
    rows.append(("correlation", _or_gap(pair.correlation)))
    rows.append(("detectable at power 0.8", _or_gap(pair.minimum_detectable)))
    rows.append(("cost per attempt", _cost(pair)))
    notes = [harmless(one.sentence) for one in pair.tipping] + [harmless(one) for one in pair.claim_reasons]
    yield Part(f"{difference_title(pair)}: {claim_line(pair)}", tuple(rows), tuple(notes), level=1)
    yield Part("tasks", tuple(_matching(pair)), level=3)
    lost = tuple((harmless(name), _listed(ids)) for name, ids in pair.lost.items() if ids)
    if lost:
        yield Part("attempts at matched tasks without a verdict", lost, level=3)
    if pair.fields:
        fields = tuple(
            (harmless(one.name), f"{one.agreement}{': ' + one.reason if one.reason else ''}") for one in pair.fields
        )
        yield Part("fields", fields, level=3)


def _or_gap(value: object) -> str:
    return gap_in_words(value) if isinstance(value, Absent) else f"{value:.4f}"


def _cost(pair: PairOf) -> str:
    if isinstance(pair.cost_difference, Absent):
        return f"no difference is stated: {pair.cost_difference.gap}"
    basis, found = pair.cost_difference.basis, pair.cost_difference.estimate
    return f"{basis.currency} {estimate_in_words(found, signed=True)} ({_priced(basis)})"


def _priced(basis: PricingBasis) -> str:
    return harmless(basis_name(basis))


def _matching(pair: PairOf) -> Iterator[tuple[str, str]]:
    tasks = pair.matching
    yield "matched", f"{len(tasks.matched):,}"
    yield (
        f"in {harmless(pair.baseline)} only",
        _listed([f"{task}@{revision}" for task, revision in tasks.baseline_only]),
    )
    yield (
        f"in {harmless(pair.candidate)} only",
        _listed([f"{one}@{revision}" for one, revision in tasks.candidate_only]),
    )
    yield "with another revision", _listed([name for name, _, _ in tasks.revision_differs])


def _listed(names: list[str] | tuple[str, ...]) -> str:
    if not names:
        return "none"
    more = len(names) - MOST_LISTED
    shown = ", ".join(harmless(one) for one in names[:MOST_LISTED])
    return f"{len(names):,}: {shown}" + (f", and {more:,} more" if more > 0 else "")


def _details(details: tuple[AttemptDetail, ...]) -> Iterator[Part]:
    for one in details[:MOST_DETAILS]:
        yield Part(f"{harmless(one.configuration_id)} / {harmless(one.attempt_id)}", tuple(_detail(one)), level=3)
    if len(details) > MOST_DETAILS:
        yield Part("details", notes=(f"{len(details) - MOST_DETAILS:,} more attempts: --json has them all",), level=3)


def _detail(one: AttemptDetail) -> Iterator[tuple[str, str]]:
    yield "task", f"{harmless(one.task_id)} at {harmless(one.task_revision)}"
    yield "outcome", ", ".join(f"{harmless(name)}: {state}" for name, state in one.states.items())
    yield "stopped", f"{one.stop}{' ' + harmless(one.stop_word) if one.stop_word else ''}; execution {one.execution}"
    if one.written_verdicts:
        yield "written", harmless("; ".join(one.written_verdicts))
    for name, figure in one.tokens.items():
        if figure.known or figure.low:
            least = "" if figure.known else ">= "
            yield TOKEN_NAMES[name].strip(), f"{least}{number(figure.low)}"
    for name, figure in one.costs.items():
        yield "cost", f"{number(figure.low)} ({harmless(name)})" if figure.known else f"unknown ({harmless(name)})"
    yield from (("diagnostic, in no total", harmless(text)) for text in one.legacy)
    for scope, seconds in one.seconds.items():
        yield f"{scope} seconds", "not recorded" if seconds is None else number(seconds)
    if one.invocation_seconds:
        each = ["not recorded" if seconds is None else number(seconds) for seconds in one.invocation_seconds]
        yield "invocations, seconds", _listed(each)
    yield from (("resource", harmless(text)) for text in one.resources)
    for request in one.requests:
        gaps = ", ".join(str(gap.reason) for gap in request.gaps)
        yield (
            f"request {harmless(request.request_id)}",
            f"{request.state}, {request.execution}{': ' + gaps if gaps else ''}",
        )
    if one.gaps:
        yield "gaps", counts(one.gaps)
    yield from (("remark", harmless(text)) for text in one.remarks)
