"""JUnit XML: valid, the same again, and what is not known has not passed (SU-7)."""

from xml.etree import ElementTree as ET

import pytest
from junitparser import JUnitXml
from msgspec.structs import replace

from paritrace.compare.result import Comparison, Mark
from paritrace.reports import junit
from paritrace.reports.cases import Case, State, cases_of_comparison
from paritrace.reports.formats import UNLIMITED, Allowed, OfComparison
from tests.reports import comparisons

# Elements of JUnit's schema that we use, with their attributes and children; the schema of Jenkins allows the same.
SCHEMA = {
    "testsuites": ({"name", "tests", "errors", "failures", "skipped"}, {"testsuite"}),
    "testsuite": ({"name", "tests", "errors", "failures", "skipped"}, {"testcase"}),
    "testcase": ({"name", "classname"}, {"failure", "skipped", "system-out"}),
    "failure": ({"message", "type"}, set[str]()),
    "skipped": ({"message"}, set[str]()),
    "system-out": (set[str](), set[str]()),
}
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


def assert_valid(element: ET.Element) -> None:
    attributes, children = SCHEMA[element.tag]
    assert set(element.attrib) <= attributes
    assert {child.tag for child in element} <= children
    if element.tag in ("testsuite", "testsuites"):
        cases = list(element.iter("testcase"))
        failures = sum(case.find("failure") is not None for case in cases)
        skipped = sum(case.find("skipped") is not None for case in cases)
        counts = {"tests": len(cases), "failures": failures, "skipped": skipped, "errors": 0}
        assert {name: int(element.attrib[name]) for name in counts} == counts
    for child in element:
        assert_valid(child)


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
    assert_valid(ET.fromstring(data))
    assert JUnitXml.fromstring(data).tests == len(list(ET.fromstring(data).iter("testcase")))


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
    root = ET.fromstring(data)
    assert_valid(root)
    assert root.find(".//script") is None
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
