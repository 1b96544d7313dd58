"""Policies: every rule passes, fails or is undetermined, with evidence and place (CP-13; A-10, A-15, A-19, A-21)."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from paritrace.compare.policy import PolicyResult, RuleResult, Rung, Verdict
from paritrace.compare.policy_file import parse_policy
from paritrace.compare.policy_verdict import policy_result
from paritrace.compare.result import LADDER, Comparison, EnvelopeUsed, Mark
from paritrace.compare.rows import Compared
from paritrace.compare.settings import Settings
from paritrace.errors import RequestError
from paritrace.evidence.calls import ConfigMark
from paritrace.testing.tables import Out, RunTable, batch
from tests.compare.runs import compared, numbers, training

HEAD = 'format = "paritrace-policy"\nversion = "1.0"\n'


def test_cp13_a_rule_can_name_every_rung_of_the_ladder() -> None:
    assert get_args(Rung) == LADDER


def policy(*rules: str) -> Settings:
    text = HEAD + "".join(f"[[rules]]\n{rule.replace('; ', chr(10))}\n" for rule in rules)
    return Settings(policy=parse_policy(text.encode(), name="p.toml"))


def judged(place: Path, a: RunTable, b: RunTable, *rules: str) -> PolicyResult:
    found = compared(place, a, b, settings=policy(*rules)).result
    assert found.policy is not None
    assert found.verdict == found.policy.verdict.value
    return found.policy


def one(place: Path, a: RunTable, b: RunTable, rule: str) -> RuleResult:
    (found,) = judged(place, a, b, rule).rules
    return found


def with_extra(table: RunTable, made: Out) -> Out:
    table.op("extra", batch(numbers(77)), out=numbers(78), line=4)
    return made


def with_nan(table: RunTable, made: Out) -> Out:
    layer = table.enter("norm", "Norm")
    value = numbers(3)
    value[5] = np.nan
    layer.leave(made, out=value, line=4)
    return made


LATE = 'kind = "threshold"; figure = "relative_error"; most = '


@pytest.mark.parametrize(
    ("rule", "same", "late"),
    [
        ('kind = "bits_agree"', "pass", "fail"),
        ('kind = "bits_agree"; function = "mul"', "pass", "pass"),
        ('kind = "bits_agree"; function = "no.such.*"', "undetermined", "undetermined"),
        ('kind = "undetermined_share"; most = 0.0', "pass", "pass"),
        ('kind = "ladder"; rungs = ["weights", "forward"]', "pass", "fail"),
        ('kind = "ladder"; rungs = ["config"]', "undetermined", "undetermined"),
        (LATE + "1e-2", "pass", "pass"),
        (LATE + "1e-4", "pass", "fail"),
        ('kind = "threshold"; figure = "norm_ratio"; most = 1.01', "pass", "pass"),
        ('kind = "threshold"; figure = "norm_ratio"; most = 1.0', "pass", "fail"),
        ('kind = "threshold"; figure = "max_ulp"; most = 4', "pass", "fail"),
        (LATE + '0.0; module = "fc"', "pass", "pass"),
        ('kind = "step_value"; relative = 0.01', "pass", "pass"),
        ('kind = "step_value"; relative = 1e-5', "pass", "fail"),
        ('kind = "step_value"; of = "grad_norm"; absolute = 0.0', "pass", "fail"),
        ('kind = "states_agree"; group = "batch"', "pass", "pass"),
        ('kind = "states_agree"; group = "gradient"', "pass", "fail"),
        ('kind = "all_ranks"', "pass", "pass"),
        ('kind = "complete"', "undetermined", "undetermined"),
        ('kind = "collectives_agree"', "undetermined", "undetermined"),
        ('kind = "inside_envelope"', "undetermined", "undetermined"),
        ('kind = "config_value"; source = "model"; setting = "x"; value = "1"', "undetermined", "undetermined"),
    ],
)
def test_cp13_each_rule_on_equal_runs_and_on_runs_that_part_late(
    tmp_path: Path, rule: str, same: str, late: str
) -> None:
    assert one(tmp_path / "same", training(), training(), rule).verdict.value == same
    found = one(tmp_path / "late", training(), training(late=1), rule)
    assert found.verdict.value == late
    assert found.evidence
    if late == "fail" and "ladder" not in rule:
        assert found.place is not None
        assert found.place.step == 1


def test_cp13_a_failure_outranks_a_doubt_and_a_doubt_a_pass(tmp_path: Path) -> None:
    rules = ('kind = "all_ranks"', 'kind = "inside_envelope"', 'kind = "bits_agree"; name = "all bits"')
    found = judged(tmp_path / "x", training(), training(late=1), *rules)
    assert [rule.verdict for rule in found.rules] == [Verdict.PASS, Verdict.UNDETERMINED, Verdict.FAIL]
    assert (found.verdict, found.rules[2].name) == (Verdict.FAIL, "all bits")
    assert judged(tmp_path / "y", training(), training(late=1), *rules[:2]).verdict is Verdict.UNDETERMINED
    assert judged(tmp_path / "z", training(), training(late=1), *rules[:1]).verdict is Verdict.PASS


def test_cp13_a_call_without_a_counterpart_leaves_bits_undetermined(tmp_path: Path) -> None:
    found = one(tmp_path, training(), training(hidden=with_extra), 'kind = "bits_agree"; function = "extra"')
    assert (found.verdict, found.checked, found.unknown) == (Verdict.UNDETERMINED, 2, 2)
    assert found.place is not None
    assert (found.place.baseline_record_id, found.place.function) == (-1, "extra")


def test_cp13_a_share_is_of_the_calls_meant(tmp_path: Path) -> None:
    share = 'kind = "undetermined_share"; most = 0.5; function = '
    assert one(tmp_path / "x", training(), training(hidden=with_extra), share + '"extra"').verdict is Verdict.FAIL
    assert one(tmp_path / "y", training(), training(hidden=with_extra), share + '"*"').verdict is Verdict.PASS
    assert one(tmp_path / "z", training(), training(), share + '"extra"').verdict is Verdict.UNDETERMINED


def test_cp13_a_nan_never_passes_a_threshold_even_where_bits_agree(tmp_path: Path) -> None:
    found = one(tmp_path, training(hidden=with_nan), training(hidden=with_nan), LATE + "1e300")
    assert found.verdict is Verdict.FAIL
    assert found.place is not None
    assert found.place.module == "norm"


@pytest.mark.parametrize(("value", "verdict"), [(float("nan"), "fail"), (float("inf"), "fail"), (2.0, "pass")])
def test_cp13_a_loss_that_is_not_finite_never_passes(tmp_path: Path, value: float, verdict: str) -> None:
    def table() -> RunTable:
        made = RunTable()
        made.loss(value)
        made.end_step()
        return made

    assert one(tmp_path, table(), table(), 'kind = "step_value"; absolute = 1e308').verdict.value == verdict


def test_cp13_what_has_no_summary_is_not_counted_and_said(tmp_path: Path) -> None:
    bare = RunTable(levels=())
    bare.op("mul", batch(numbers(1)), out=numbers(2))
    found = one(tmp_path, training(), training(), LATE + '0.0; function = "no such"')
    assert found.verdict is Verdict.UNDETERMINED
    assert "nothing that was recorded" in found.evidence


# --- cases --------------------------------------------------------------------------------------------------------


def test_a15_a_half_fix_still_fails_and_says_what_factor_is_left(tmp_path: Path) -> None:
    """Two factors, 4 ranks x 2 micro-batches: mending one leaves the other, and both reports stand."""

    def table(loss: float) -> RunTable:
        made = RunTable()
        made.loss(loss)
        made.end_step()
        return made

    rule = 'kind = "step_value"; relative = 1e-3'
    before = one(tmp_path / "before", table(1.25), table(10.0), rule)
    after = one(tmp_path / "after", table(1.25), table(5.0), rule)
    assert (before.verdict, after.verdict) == (Verdict.FAIL, Verdict.FAIL)
    assert "ratio 8" in before.evidence
    assert "ratio 4" in after.evidence


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        (("1.0", "1.0"), "fail"),
        (("0.25", "1.0"), "fail"),
        (("0.25", "0.250"), "pass"),
        (("0.25", None), "undetermined"),
    ],
)
def test_a19_runs_that_agree_on_what_was_not_declared_fail(
    tmp_path: Path, values: tuple[str, str | None], verdict: str
) -> None:
    tables = []
    for value in values:
        table = training(steps=1)
        table.mark(ConfigMark("model", {} if value is None else {"kv_scale": value}))
        tables.append(table)
    rule = 'kind = "config_value"; source = "model"; setting = "kv_scale"; value = "0.25"'
    found = one(tmp_path, tables[0], tables[1], rule)
    assert found.verdict.value == verdict
    if values == ("1.0", "1.0"):
        assert "declared 0.25, observed 1.0 (baseline)" in found.evidence
        assert "declared 0.25, observed 1.0 (candidate)" in found.evidence


def test_a21_equal_ends_and_other_intermediates_are_two_statements(tmp_path: Path) -> None:
    def hidden(table: RunTable, made: Out) -> Out:
        table.op("extra", batch(numbers(77)), out=numbers(78 + table.step * scale), line=4)
        return made

    scale = 0
    ours = training(hidden=hidden)
    scale = 1
    found = judged(
        tmp_path, ours, training(hidden=hidden), 'kind = "step_value"; relative = 0.0', 'kind = "bits_agree"'
    )
    assert [rule.verdict for rule in found.rules] == [Verdict.PASS, Verdict.FAIL]
    assert set(Verdict) == {"pass", "fail", "undetermined", "not_evaluated"}


def test_a10_what_follows_from_the_first_difference_is_no_finding_of_its_own(tmp_path: Path) -> None:
    found = compared(tmp_path, training(), training(late=1), settings=policy('kind = "bits_agree"')).result
    assert found.policy is not None
    (rule,) = found.policy.rules
    assert rule.broken > 1
    assert len(found.findings) == 1
    assert rule.place is not None
    assert found.first_difference is not None
    assert rule.place.baseline_record_id == found.first_difference.baseline_record_id


# --- rules about the whole result -----------------------------------------------------------------------------------


@pytest.fixture
def result(tmp_path: Path) -> Comparison:
    return compared(tmp_path, training(), training(late=1)).result


def of(result: Comparison, rule: str) -> RuleResult:
    loaded = policy(rule).policy
    assert loaded is not None
    (found,) = policy_result(result, loaded, []).rules
    return found


@pytest.mark.parametrize(
    ("envelope", "mark", "verdict"),
    [
        (None, "~", "undetermined"),
        (EnvelopeUsed("perturbed baselines", 2, why="2 of at least 4 draws"), "~", "undetermined"),
        (EnvelopeUsed("perturbed baselines", 8, 0.1, judged=0), "~", "undetermined"),
        (EnvelopeUsed("perturbed baselines", 8, 0.1, judged=9, beyond=0, largest=0.4), "~", "pass"),
        (EnvelopeUsed("perturbed baselines", 8, 0.1, judged=9, beyond=1, largest=4.0), "~", "fail"),
        (EnvelopeUsed("perturbed baselines", 8, 0.1, judged=9, beyond=0, largest=0.4), "X", "fail"),
    ],
)
def test_cp13_nothing_beyond_the_envelope_needs_an_envelope(
    result: Comparison, envelope: EnvelopeUsed | None, mark: str, verdict: str
) -> None:
    ladder = dict.fromkeys(result.ladder, Mark.AGREES) | {"forward": Mark(mark), "code": Mark.BEYOND}
    found = of(replace(result, envelope=envelope, ladder=ladder), 'kind = "inside_envelope"')
    assert found.verdict.value == verdict


@pytest.mark.parametrize(
    ("mark", "bits", "inside"),
    [
        ("=", "pass", "pass"),
        ("~", "fail", "pass"),
        ("X", "fail", "fail"),
        ("?", "undetermined", "undetermined"),
        (".", "undetermined", "undetermined"),
    ],
)
def test_cp13_rungs(result: Comparison, mark: str, bits: str, inside: str) -> None:
    marked = replace(result, ladder=result.ladder | {"loss": Mark(mark)})
    assert of(marked, 'kind = "ladder"; rungs = ["loss"]').verdict.value == bits
    assert of(marked, 'kind = "ladder"; rungs = ["loss"]; at_least = "~"').verdict.value == inside


def test_cp13_missing_ranks_fail_where_all_are_asked_for(result: Comparison) -> None:
    found = of(replace(result, ranks_missing=(1,)), 'kind = "all_ranks"')
    assert (found.verdict, found.evidence) == (Verdict.FAIL, "1 of 2 ranks; not compared: 1")


# --- the file ----------------------------------------------------------------------------------------------------


def test_cp13_all_problems_of_a_file_are_told_at_once() -> None:
    text = (
        'format = "paritrace-policies"\nversoin = "1.0"\n'
        '[[rules]]\nkind = "bits_agree"\nmodul = "x"\n'
        '[[rules]]\nkind = "undetermined_share"\nmost = 2.0\nphase = 3\n'
        '[[rules]]\nkind = "no_such"\n'
        '[[rules]]\nkind = "ladder"\nrungs = ["loss", "los"]\n'
        '[[rules]]\nkind = "threshold"\nfigure = "max_ulp"\n'
    )
    with pytest.raises(RequestError) as caught:
        parse_policy(text.encode(), name="ci.toml")
    told = caught.value.details
    assert caught.value.code == "bad_policy"
    expected = (
        "format:",
        "versoin: there is no such key; version is meant?",
        "version: is missing",
        "rules[0].modul: there is no such key; module is meant?",
        "rules[1].most:",
        "rules[1].phase:",
        "rules[2]: its kind is 'no_such'",
        "rules[3].rungs:",
        "rules[4].most: is missing",
    )
    assert len(told) == len(expected)
    assert all(any(line.startswith(start) for line in told) for start in expected)


@pytest.mark.parametrize(
    "rules",
    [
        "",
        "rules = []",
        'rules = "x"',
        "[rules]\nkind = 1",
        '[[rules]]\nkind = "step_value"',
        "[[rules",
        "\xff",
        '[[rules]]\nkind = "threshold"\nfigure = "norm_ratio"\nmost = 0.5',
        '[[rules]]\nkind = "ladder"\nrungs = []',
        '[[rules]]\nkind = "threshold"\nfigure = "max_ulp"\nmost = inf',
        "[[rules]]\n",
        "rules = [1]",
        '[[rules]]\nkind = "step_value"\nrelative = nan',
        "deep = " + "[" * 10_000,
    ],
)
def test_cp13_what_could_not_be_meant_is_refused(rules: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse_policy((HEAD + rules).encode("latin-1"), name="ci.toml")
    assert caught.value.code == "bad_policy"
    assert caught.value.details


# --- CP-4 ---------------------------------------------------------------------------------------------------------

SYMMETRIC = [
    'kind = "bits_agree"', 'kind = "bits_agree"; function = "extra"', 'kind = "undetermined_share"; most = 0.01',
    LATE + "1e-4", LATE + "1e-2", 'kind = "threshold"; figure = "norm_ratio"; most = 1.0005',
    'kind = "threshold"; figure = "max_ulp"; most = 4; direction = "*"', 'kind = "step_value"; relative = 5e-4',
    'kind = "step_value"; of = "grad_norm"; absolute = 0.001', 'kind = "states_agree"', 'kind = "all_ranks"',
    'kind = "ladder"; rungs = ["weights", "loss", "forward"]; at_least = "~"',
]  # fmt: skip


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 2), st.sampled_from([1.0, 1.001, 1.5]), st.booleans(), st.booleans())
def test_cp4_swapping_the_sides_mirrors_every_verdict(late: int, scale: float, ours: bool, theirs: bool) -> None:
    a = training(hidden=with_extra if ours else None)
    b = training(hidden=with_extra if theirs else None, late=late, scale=2.0 * scale)
    with TemporaryDirectory() as folder:
        there = compared(Path(folder) / "there", a, b, settings=policy(*SYMMETRIC))
        back = compared(Path(folder) / "back", b, a, settings=policy(*SYMMETRIC))
        assert _rules(there) == _rules(back)


def _rules(found: Compared) -> list[tuple[object, ...]]:
    assert found.result.policy is not None
    return [
        (rule.verdict, rule.checked, rule.broken, rule.unknown, rule.worst, rule.evidence.partition("; loss")[0])
        for rule in found.result.policy.rules
        if rule.kind != "step_value"
    ] + [(rule.verdict, rule.broken, rule.worst) for rule in found.result.policy.rules if rule.kind == "step_value"]
