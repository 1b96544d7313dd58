"""Rules over attempts: what is missing is held neither for nor against them (AT-17)."""

import pytest

from paritrace import attempts
from paritrace.attempts.manifest import Primary
from paritrace.attempts.toml_files import parse_gate
from paritrace.correspondence.vocabulary import Verdict
from paritrace.errors import RequestError
from tests.attempts.written import FAIL, PASS, attempt, loaded, manifest

ABOUT = 'configuration = "a"\n'
PAIR = 'baseline = "a"\ncandidate = "b"\n'


def verdict(rule: str, *, missing: int = 0, behind: int = 0, declared: bool = True) -> Verdict:
    """The verdict over twelve tasks: `a` passes six, `b` passes `behind` fewer; `missing` of each have no verdict."""
    listed = []
    for name, passes in (("a", 6), ("b", 6 - behind)):
        for n in range(12):
            got = None if n >= 12 - missing else PASS if n < passes else FAIL
            listed.append(attempt(f"{name}-t{n:02}-1", got))
    of = manifest(listed, primary=Primary("a", "b") if declared else None)
    return attempts.compare(loaded(of), gate=parse_gate(f"[[rules]]\n{rule}".encode(), name="gate.toml")).verdict


def test_at_17_a_pass_fraction_is_judged_by_its_worst_case() -> None:
    wanted = f'kind = "pass_fraction"\n{ABOUT}at_least = '
    assert verdict(wanted + "0.5") is Verdict.PASS
    assert verdict(wanted + "0.51") is Verdict.FAIL
    assert verdict(wanted + "0.6", missing=3) is Verdict.UNDETERMINED
    assert verdict(wanted + "0.5", missing=3) is Verdict.PASS
    assert verdict(wanted + "0.8", missing=3) is Verdict.FAIL


def test_at_17_no_regression_is_judged_by_interval_and_missing_verdicts() -> None:
    rule = f'kind = "no_regression"\n{PAIR}margin = '
    assert verdict(rule + "0.5", behind=1) is Verdict.PASS
    assert verdict(rule + "0.1", behind=1) is Verdict.UNDETERMINED
    assert verdict(rule + "0.0", behind=6) is Verdict.FAIL
    assert verdict(rule + "0.5", behind=1, missing=6) is Verdict.UNDETERMINED


def test_at_17_a_claim_has_to_be_declared() -> None:
    rule = f'kind = "claim"\n{PAIR}better = '
    assert verdict(rule + '"a"', behind=6) is Verdict.PASS
    assert verdict(rule + '"b"', behind=6) is Verdict.FAIL
    assert verdict(rule + '"a"', behind=6, declared=False) is Verdict.UNDETERMINED
    assert verdict(rule + '"a"', behind=1) is Verdict.UNDETERMINED


def test_at_17_cost_and_completeness() -> None:
    assert verdict(f'kind = "cost_at_most"\n{ABOUT}amount = 6.0') is Verdict.PASS
    assert verdict(f'kind = "cost_at_most"\n{ABOUT}amount = 5.9') is Verdict.FAIL
    assert verdict(f'kind = "cost_at_most"\n{ABOUT}amount = 6.0\ncurrency = "EUR"') is Verdict.UNDETERMINED
    assert verdict('kind = "complete"') is Verdict.PASS
    assert verdict('kind = "complete"', missing=1) is Verdict.FAIL


def test_at_17_a_rule_about_nothing_is_undetermined() -> None:
    assert verdict('kind = "pass_fraction"\nconfiguration = "x"\nat_least = 0.0') is Verdict.UNDETERMINED
    assert verdict('kind = "no_regression"\nbaseline = "x"\ncandidate = "b"') is Verdict.UNDETERMINED


def test_at_17_fail_comes_before_undetermined_before_pass() -> None:
    whole = 'kind = "complete"\n[[rules]]\nkind = "pass_fraction"\nconfiguration = "x"\nat_least = 0.0\n'
    assert verdict(whole) is Verdict.UNDETERMINED
    assert verdict(whole + f'[[rules]]\nkind = "pass_fraction"\n{ABOUT}at_least = 0.9') is Verdict.FAIL


@pytest.mark.parametrize(
    "text", ["", "rules = 3", '[[rules]]\nkind = "x"', '[[rules]]\nkind = "complete"\nmore = 1', "[[rules]]\nkind = "]
)
def test_at_17_a_gate_is_read_strictly(text: str) -> None:
    with pytest.raises(RequestError) as refused:
        parse_gate(text.encode(), name="gate.toml")
    assert refused.value.code == "bad_gate"
