"""JUnit XML: valid, the same again, and what is not known has not passed (SU-7)."""

from io import BytesIO
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from junitparser import JUnitXml
from msgspec.structs import replace
from xmlschema import XMLSchema

from paritrace.compare.checks_result import Outcome
from paritrace.compare.result import Comparison, Mark
from paritrace.reports import junit
from paritrace.reports.cases import Case, State, cases_of_comparison
from paritrace.reports.formats import UNLIMITED, Allowed, OfCheck, OfComparison
from tests.reports import comparisons
from tests.reports.test_check_screen import checked, invariant

SCHEMA = XMLSchema(
    Path(__file__).parent.parent / "data" / "junit" / "junit-10.xsd"
)  # what Jenkins' plugin holds reports to
HOSTILE = "]]><script>\x00\x1b[31m\n&\ud800" + "x" * 10_000


class Bytes:
    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes, /) -> None:
        self.data += data


def written(comparison: Comparison, *, allowed: Allowed = Allowed()) -> bytes:  # noqa: B008  frozen
    sink = Bytes()
    junit.comparison(OfComparison(comparison=comparison, rows=(), allowed=allowed), sink)
    return sink.data


def assert_valid(data: bytes) -> None:
    """Jenkins' schema holds, and every count is that of the cases below it."""
    SCHEMA.validate(BytesIO(data))
    root = ET.fromstring(data)
    for element in (root, *root.iter("testsuite")):
        cases = list(element.iter("testcase"))
        failures = sum(case.find("failure") is not None for case in cases)
        counts = {"tests": len(cases), "failures": failures, "errors": 0}
        if element is not root:  # the schema counts skipped cases by suite alone
            counts["skipped"] = sum(case.find("skipped") is not None for case in cases)
        assert {name: int(element.attrib[name]) for name in counts} == counts


def failures(data: bytes) -> dict[str, str]:
    """Name of each case that failed, and the type of its failure."""
    found = {}
    for case in ET.fromstring(data).iter("testcase"):
        failure = case.find("failure")
        if failure is not None:
            found[case.attrib["name"]] = failure.attrib["type"]
    return found


@pytest.mark.parametrize("make", [comparisons.agreeing, comparisons.parted, comparisons.unnamed])
def test_su7_the_document_is_valid_and_the_same_again(make: object) -> None:
    comparison = make()  # type: ignore[operator]  # one of the functions above
    data = written(comparison)
    assert data == written(comparison)
    assert_valid(data)
    assert JUnitXml.fromstring(data).tests == len(list(ET.fromstring(data).iter("testcase")))


def test_su7_a_check_is_valid_too_and_what_is_not_checkable_is_a_failure_of_its_own() -> None:
    sink = Bytes()
    statuses = (Outcome.PASS, Outcome.FAIL, Outcome.NOT_CHECKABLE)
    found = checked(*(invariant(f"I{number}", status) for number, status in enumerate(statuses)))
    junit.check(OfCheck(checked=found), sink)
    assert_valid(sink.data)
    assert set(failures(sink.data).values()) == {"failed", "undetermined"}


def test_su7_runs_that_agree_fail_nothing() -> None:
    assert failures(written(comparisons.agreeing())) == {}


def test_su7_undetermined_is_a_failure_of_its_own_unless_it_is_allowed() -> None:
    parted = comparisons.parted()
    found = failures(written(parted))
    assert found["undetermined calls"] == found["reduced grads"] == "undetermined"
    assert (found["F1"], found["forward"]) == ("different", "different")
    assert "code" not in found  # what changed around the runs is a cause
    total = parted.counts.undetermined_baseline + parted.counts.undetermined_candidate + parted.counts.incomparable
    for allowed in (Allowed(undetermined=UNLIMITED), Allowed(undetermined=total)):
        accepted = failures(written(parted, allowed=allowed))
        assert "undetermined calls" not in accepted
        assert accepted["F1"] == "different"
    assert failures(written(parted, allowed=Allowed(undetermined=total - 1)))["undetermined calls"] == "undetermined"
    assert b"undetermined: " in written(parted, allowed=Allowed(undetermined=UNLIMITED))  # accepted, and still told


def test_su7_what_an_envelope_explains_is_told_as_that() -> None:
    parted = comparisons.parted()
    inside = replace(parted.findings[0], ratio=0.4, reached=1.0)
    found = replace(parted, findings=(inside,), ladder=comparisons.ladder(forward=Mark.INSIDE))
    assert failures(written(found))["F1"] == failures(written(found))["forward"] == "inside-envelope"
    assert not {"F1", "forward"} & failures(written(found, allowed=Allowed(inside_envelope=True))).keys()


def test_su12_hostile_names_are_text() -> None:
    parted = comparisons.parted()
    finding = replace(parted.findings[0], sentence=HOSTILE, id=HOSTILE)
    data = written(replace(parted, findings=(finding,), candidate=replace(parted.candidate, run_id=HOSTILE)))
    assert_valid(data)
    assert ET.fromstring(data).find(".//script") is None
    assert len(data) < 60_000


def test_su7_a_document_is_bounded_and_says_what_it_leaves_out() -> None:
    cases = [Case("findings", f"F{number}", State.PASSED) for number in range(5000)]
    cases.append(Case("findings", "last", State.DIFFERENT, "differs"))
    data = junit.document(cases, name="many")
    assert len(list(ET.fromstring(data).iter("testcase"))) == junit.MOST_CASES + 1
    assert b"3,001 of 5,001 cases are not shown" in data
    assert b'name="last"' in data


def test_cp13_with_a_policy_its_rules_alone_can_fail() -> None:
    from paritrace.compare.policy import PolicyResult, RuleResult, Verdict

    rules = (
        RuleResult(1, "weights", "ladder", Verdict.PASS, "agree"),
        RuleResult(2, "loss", "step_value", Verdict.FAIL, "no"),
    )
    judged = replace(comparisons.parted(), policy=PolicyResult("nightly", "0" * 64, Verdict.FAIL, rules))
    cases = cases_of_comparison(judged, allowed=Allowed())
    failed = [case.name for case in cases if case.state not in (State.PASSED, State.SKIPPED)]
    assert failed == ["2. loss"]
