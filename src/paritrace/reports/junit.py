"""JUnit XML of a result, for the systems that show test reports: deterministic, bounded, undetermined fails (SU-7)."""

from collections.abc import Sequence

from junitparser import Failure, JUnitXml, Skipped, TestCase, TestSuite

from paritrace.reports.cases import Case, State, cases_of_check, cases_of_comparison
from paritrace.reports.formats import OfCheck, OfComparison, Sink
from paritrace.reports.harmless import harmless

MOST_CASES = 2000  # more than anybody opens; what is left out is a case of its own that says so
LONGEST = 4000  # characters of one text


def comparison(given: OfComparison, sink: Sink, /) -> None:
    """Writes rungs, findings and coverage of a comparison as test cases."""
    cases = cases_of_comparison(given.comparison, allowed=given.allowed)
    sink.write(document(cases, name=f"paritrace compare {given.comparison.candidate.run_id}"))


def check(given: OfCheck, sink: Sink, /) -> None:
    """Writes the invariants of a check as test cases."""
    cases = cases_of_check(given.checked, allowed=given.allowed)
    sink.write(document(cases, name=f"paritrace check {given.checked.run.run_id}"))


def document(cases: Sequence[Case], /, *, name: str) -> bytes:
    """Returns the XML of cases: one suite for each of theirs; no time or host, so that it is the same again."""
    shown = _bounded(cases)
    report = JUnitXml(_text(name))
    for suite in dict.fromkeys(case.suite for case in shown):
        of_suite = [case for case in shown if case.suite == suite]
        made = TestSuite(f"paritrace.{suite}")
        made.extend([_case(case) for case in of_suite])
        _count(made, of_suite)
        made.skipped = sum(
            case.state is State.SKIPPED for case in of_suite
        )  # of the root the schema knows no such count
        report.append(made)
    _count(report, shown)
    data: bytes = report.tostring()
    return data + b"\n"


def _count(element: JUnitXml | TestSuite, cases: Sequence[Case]) -> None:
    """The counts alone: the library's own would add a time, and 0 says that it took no time."""
    element.tests = len(cases)
    element.errors = 0
    element.failures = sum(case.state not in (State.PASSED, State.SKIPPED) for case in cases)


def _bounded(cases: Sequence[Case]) -> list[Case]:
    """The first MOST_CASES of them, those that failed before those that did not."""
    if len(cases) <= MOST_CASES:
        return list(cases)
    by_weight = sorted(cases, key=lambda case: case.state in (State.PASSED, State.SKIPPED))
    rest = len(cases) - MOST_CASES
    note = Case("left_out", "cases", State.SKIPPED, f"{rest:,} of {len(cases):,} cases are not shown; see --json")
    return [*by_weight[:MOST_CASES], note]


def _case(case: Case) -> TestCase:
    made = TestCase(_text(case.name), classname=f"paritrace.{case.suite}")
    text = _text("\n".join((case.message, *case.text)) if case.message else "\n".join(case.text))
    match case.state:
        case State.PASSED:
            if case.text:
                made.system_out = _text("\n".join(case.text))
        case State.SKIPPED:
            made.result = [Skipped(_text(case.message))]
        case _:
            failure = Failure(_text(case.message), case.state.value)
            failure.text = text
            made.result = [failure]
    return made


def _text(value: str) -> str:
    """Text that XML can hold; lines stay lines."""
    shown = value if len(value) <= LONGEST else f"{value[:LONGEST]}… ({len(value):,} characters)"
    return "\n".join(harmless(line) for line in shown.split("\n"))
