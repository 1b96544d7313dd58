"""The rules of comparing inference runs: conditions, populations, quantiles, designs, gates (IN-17, IN-27)."""

from math import exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from paritrace.errors import RequestError
from paritrace.inference.comparison.absence import Absent
from paritrace.inference.comparison.compatibility import FieldVerdict, compatibility, overall
from paritrace.inference.comparison.conditions import REQUIRED, Condition, class_of
from paritrace.inference.comparison.designs import Effect, Found, effect
from paritrace.inference.comparison.gates import Gate, GateOutcome, gate_of, outcome
from paritrace.inference.comparison.metrics import Span, penalised_quantile, rate
from paritrace.inference.comparison.populations import Bounds, populations
from paritrace.inference.comparison.summaries import figures_of_summary
from paritrace.inference.comparison.vocabulary import (
    CompareGap,
    Compatibility,
    Design,
    FieldClass,
    GateReason,
    GateVerdict,
    Scale,
    Stated,
)
from paritrace.statistics.records import Interval

ALL = {name: Condition("x", Stated.OBSERVED) for name in REQUIRED}


def verdict(name: str, first: Condition | None, second: Condition | None, *, treated: bool = False) -> FieldVerdict:
    rest = {key: value for key, value in ALL.items() if key != name}
    arms = [[rest if one is None else rest | {name: one}] for one in (first, second)]
    found = compatibility(arms[0], arms[1], treatments=(name,) if treated else ())
    return next(one for one in found if one.name == name)


def seen(value: str | float | bool, stated: Stated = Stated.OBSERVED) -> Condition:
    return Condition(value, stated)


@pytest.mark.parametrize(
    ("name", "first", "second", "status"),
    [
        ("engine.version", seen("1"), seen("1", Stated.REPORTED), Compatibility.COMPATIBLE),
        ("engine.version", seen("1"), seen("2"), Compatibility.INCOMPATIBLE),
        ("engine.version", seen("1"), seen("1", Stated.DECLARED), Compatibility.UNVERIFIED),
        ("engine.version", seen("1"), seen("1", Stated.INFERRED), Compatibility.UNVERIFIED),
        ("engine.version", seen("1"), seen("2", Stated.DECLARED), Compatibility.INCOMPATIBLE),
        ("engine.version", seen("1"), None, Compatibility.UNVERIFIED),
        ("engine.version", None, None, Compatibility.UNVERIFIED),  # needed, and nobody has it
        ("gpu.count", seen(1.0), seen("1.0"), Compatibility.COMPATIBLE),
        ("load.loop", seen("open"), seen("closed"), Compatibility.INCOMPATIBLE),  # IN-27
        ("load.warm_up_excluded", seen(True), seen(False), Compatibility.INCOMPATIBLE),
        ("engine.config.max_num_seqs", seen("8"), seen("16"), Compatibility.UNVERIFIED),
        ("observation.device_uuid", seen("a"), seen("b"), Compatibility.COMPATIBLE),
        ("label.title", seen("a"), None, Compatibility.COMPATIBLE),
        ("my.own", seen("a"), seen("a"), Compatibility.COMPATIBLE),
        ("my.own", seen("a"), seen("b"), Compatibility.INCOMPATIBLE),  # nobody said what it is: it blocks
        ("my.own", seen("a"), None, Compatibility.UNVERIFIED),
    ],
)
def test_a_field_is_judged_by_its_class_and_by_how_it_is_known(
    name: str, first: Condition | None, second: Condition | None, status: Compatibility
) -> None:
    assert verdict(name, first, second).status is status


def test_what_is_compared_has_to_differ_and_be_one_thing_in_each_arm() -> None:
    name = "engine.config"
    assert verdict(name, seen("a"), seen("b"), treated=True).status is Compatibility.COMPATIBLE
    assert verdict(name, seen("a"), seen("a"), treated=True).status is Compatibility.INCOMPATIBLE
    a, b, c = (ALL | {name: seen(value)} for value in "abc")
    mixed = compatibility([a, b], [c], treatments=(name,))
    assert overall(mixed) is Compatibility.INCOMPATIBLE


def test_an_identity_that_differs_inside_an_arm_is_incompatible() -> None:
    found = compatibility([ALL, ALL | {"gpu.name": seen("other")}], [ALL])
    assert next(one for one in found if one.name == "gpu.name").detail == "differs between the runs of one arm"


def test_all_that_is_needed_and_equal_is_compatible() -> None:
    assert overall(compatibility([ALL, ALL], [ALL])) is Compatibility.COMPATIBLE
    assert class_of("whatever") is FieldClass.UNCLASSIFIED


def test_populations_have_bounds_where_an_outcome_is_not_known() -> None:
    counts = {
        "dropped": 1, "unreachable": 2, "delivery_unknown": 3, "rejected": 4, "successful": 50, "failed": 5,
        "timed_out": 6, "cancelled": 7, "incomplete": 2, "weird": 10,
    }  # fmt: skip
    found = populations(counts)
    assert (found.offered, found.num_unknown, found.num_incomplete) == (Bounds(90, 90), 10, 2)
    assert found.successful == Bounds(50, 60)
    assert found.failed == Bounds(5, 17)  # what had no end may have failed
    assert found.sent == Bounds(79, 89)
    assert found.accepted == Bounds(70, 83)
    assert found.successful_fraction == (50 / 90, 60 / 90)


def test_no_request_has_no_fraction() -> None:
    assert populations({}).successful_fraction is None


@given(
    st.dictionaries(
        st.sampled_from(["successful", "failed", "incomplete", "odd", "dropped", "rejected"]), st.integers(0, 99)
    )
)
def test_populations_add_up(counts: dict[str, int]) -> None:
    found = populations(counts)
    assert found.offered.low == sum(counts.values())
    assert found.successful.low <= found.accepted.high <= found.sent.high <= found.offered.high
    assert found.sent.high == found.offered.high - found.dropped.low


def quantile(values: list[float], failed: int = 0, unknown: int = 0, fraction: float = 0.5) -> Span | Absent:
    return penalised_quantile(np.array(sorted(values)), num_failed=failed, num_unknown=unknown, fraction=fraction)


def test_a_failed_request_is_slower_than_any_other() -> None:
    values = [float(n) for n in range(1, 11)]
    assert quantile(values) == Span(5.0, 5.0)
    assert quantile(values, failed=4) == Span(7.0, 7.0)  # not 5.0, as if the failed ones had never been
    beyond = quantile(values, failed=10, fraction=0.9)
    assert isinstance(beyond, Absent)
    assert beyond.gap is CompareGap.QUANTILE_IN_FAILURES
    none = quantile([], failed=8)
    assert isinstance(none, Absent)
    assert none.gap is CompareGap.NO_REQUESTS


def test_what_is_not_known_bounds_a_quantile_from_both_sides() -> None:
    values = [float(n) for n in range(1, 11)]
    assert quantile(values, unknown=2) == Span(4.0, 6.0)


@given(
    st.lists(st.floats(0.001, 1e3), min_size=1, max_size=40), st.integers(0, 10), st.integers(0, 10), st.floats(0.01, 1)
)
def test_bounds_of_a_quantile_hold_whatever_the_unknown_were(
    values: list[float], failed: int, unknown: int, fraction: float
) -> None:
    found = quantile(values, failed, unknown, fraction)
    fastest = quantile([*values, *[0.0] * unknown], failed, 0, fraction)
    slowest = quantile(values, failed + unknown, 0, fraction)
    if isinstance(found, Span):
        assert isinstance(fastest, Span)
        assert isinstance(slowest, Span)
        assert found == Span(fastest.low, slowest.high)
    else:
        assert isinstance(slowest, Absent)


def test_a_rate_needs_an_interval_that_somebody_stated() -> None:
    unknown = rate(5, None)
    assert isinstance(unknown, Absent)
    assert unknown.gap is CompareGap.INTERVAL_UNKNOWN
    assert rate(5, 2.0) == Span(2.5, 2.5)


A, B = [1.0, 1.1, 0.9, 1.05], [1.2, 1.25, 1.1, 1.3]


def test_paired_blocks_are_student_on_log_ratios() -> None:
    found = effect(A, B, scale=Scale.LOG_RATIO, design=Design.PAIRED_BLOCKS, level=0.95)
    assert isinstance(found, Effect)
    within = [log(b / a) for a, b in zip(A, B, strict=True)]
    reference = stats.ttest_1samp(within, 0).confidence_interval(0.95)
    assert found.value == pytest.approx(exp(float(np.mean(within))))
    assert isinstance(found.interval, Interval)
    assert (found.interval.low, found.interval.high) == pytest.approx((exp(reference.low), exp(reference.high)))


def test_in17_a_p_value_is_that_of_the_same_t_test() -> None:
    found = effect(A, B, scale=Scale.LOG_RATIO, design=Design.PAIRED_BLOCKS, level=0.95)
    assert isinstance(found, Effect)
    assert found.p_value == pytest.approx(float(stats.ttest_rel(np.log(B), np.log(A)).pvalue))


@pytest.mark.parametrize("design", list(Design))
def test_in17_a_ratio_of_means_has_fiellers_interval_and_holds_a_zero(design: Design) -> None:
    found = effect(A, [0.0, *B[1:]], scale=Scale.MEANS_RATIO, design=design, level=0.95)
    assert isinstance(found, Effect)
    assert found.value == pytest.approx(float(np.mean([0.0, *B[1:]]) / np.mean(A)))
    assert isinstance(found.interval, Interval)
    assert found.interval.method == "Fieller interval, 3 degrees of freedom"
    assert found.interval.low < found.value < found.interval.high
    by_logs = effect(A, [0.0, *B[1:]], scale=Scale.LOG_RATIO, design=design, level=0.95)
    assert by_logs == Absent(CompareGap.ZERO_IN_ARM)


def test_in17_a_ratio_to_what_may_be_zero_has_no_bounds() -> None:
    found = effect([0.0, 0.0, 3.0], A[:3], scale=Scale.MEANS_RATIO, design=Design.INDEPENDENT, level=0.95)
    assert isinstance(found, Effect)
    assert found.interval == Absent(CompareGap.UNBOUNDED)
    none = effect([0.0, 0.0, 0.0], A[:3], scale=Scale.MEANS_RATIO, design=Design.INDEPENDENT, level=0.95)
    assert none == Absent(CompareGap.ZERO_IN_ARM)


def test_independent_runs_are_welch_with_the_smaller_df() -> None:
    found = effect(A, B[:3], scale=Scale.DIFFERENCE, design=Design.INDEPENDENT, level=0.95)
    assert isinstance(found, Effect)
    error = sqrt(np.var(A, ddof=1) / 4 + np.var(B[:3], ddof=1) / 3)
    reach = float(stats.t.ppf(0.975, 2)) * error  # min(4, 3) - 1
    assert isinstance(found.interval, Interval)
    assert (found.interval.low, found.interval.high) == pytest.approx((found.value - reach, found.value + reach))
    welch = stats.ttest_ind(B[:3], A, equal_var=False).confidence_interval(0.95)
    assert found.interval.high - found.interval.low > welch.high - welch.low  # never the narrower one


@pytest.mark.parametrize(
    ("baseline", "candidate", "scale", "gap"),
    [
        ([1.0, 0.0], [1.0, 1.0], Scale.LOG_RATIO, CompareGap.ZERO_IN_ARM),
        ([], [1.0], Scale.DIFFERENCE, CompareGap.NO_REQUESTS),
    ],
)
def test_what_has_no_effect_says_why(
    baseline: list[float], candidate: list[float], scale: Scale, gap: CompareGap
) -> None:
    found = effect(baseline, candidate, scale=scale, design=Design.INDEPENDENT, level=0.95)
    assert isinstance(found, Absent)
    assert found.gap is gap


@pytest.mark.parametrize(
    ("baseline", "candidate", "design", "gap"),
    [
        ([1.0, 2.0], [1.0, 3.0], Design.PAIRED_BLOCKS, CompareGap.TOO_FEW_RUNS),
        ([1.0], [1.0, 3.0], Design.INDEPENDENT, CompareGap.TOO_FEW_RUNS),
        ([1.0, 1.0], [2.0, 2.0], Design.INDEPENDENT, CompareGap.ZERO_VARIANCE),
    ],
)
def test_an_effect_without_an_interval_says_why(
    baseline: list[float], candidate: list[float], design: Design, gap: CompareGap
) -> None:
    found = effect(baseline, candidate, scale=Scale.DIFFERENCE, design=design, level=0.95)
    assert isinstance(found, Effect)
    assert isinstance(found.interval, Absent)
    assert found.interval.gap is gap


def gated(gate: Gate, baseline: list[float], candidate: list[float], *, best: list[float] | None = None) -> GateOutcome:
    def effects(first: object, second: object, worst: bool) -> Found:
        ours = candidate if worst or best is None else best
        return effect(
            [baseline[place] for place in first],  # type: ignore[attr-defined]
            [ours[place] for place in second],  # type: ignore[attr-defined]
            scale=Scale.LOG_RATIO,
            design=Design.INDEPENDENT,
            level=0.95,
        )

    names = [f"a{n}" for n in range(len(baseline))], [f"b{n}" for n in range(len(candidate))]
    return outcome(gate, effects, design=Design.INDEPENDENT, baseline=names[0], candidate=names[1])


STEADY = [1.00, 1.01, 0.99, 1.0, 1.005]


def test_gates_pass_and_fail_and_say_when_neither() -> None:
    gate = Gate("latency.p99", 1.1)
    assert gated(gate, STEADY, STEADY).verdict is GateVerdict.PASS
    assert gated(gate, STEADY, [2 * one for one in STEADY]).verdict is GateVerdict.FAIL
    assert gated(gate, STEADY, STEADY, best=STEADY).verdict is GateVerdict.PASS
    hinges = gated(gate, STEADY, [2 * one for one in STEADY], best=STEADY)
    assert (hinges.verdict, hinges.reason) == (GateVerdict.NOT_EVALUABLE, GateReason.MISSING_DECIDES)
    few = gated(gate, STEADY[:2], STEADY[:2])
    assert (few.verdict, few.reason) == (GateVerdict.NOT_EVALUABLE, GateReason.TOO_FEW_RUNS)
    none = gated(gate, STEADY[:1], STEADY)
    assert (none.verdict, none.reason) == (GateVerdict.NOT_EVALUABLE, GateReason.NO_FIGURE)


def test_what_one_run_decides_is_not_decided() -> None:
    found = gated(Gate("latency.p99", 1.1), STEADY, [1.0, 1.01, 0.99, 1.0, 1.6])
    assert (found.verdict, found.reason) == (GateVerdict.NOT_EVALUABLE, GateReason.DECISION_UNSTABLE)
    assert found.flips == ("b4",)


def test_gates_are_written_as_they_read() -> None:
    assert gate_of("time_to_first_output.p99 <= 1.05") == Gate("time_to_first_output.p99", 1.05)
    assert gate_of("successful_fraction>=-0.01") == Gate("successful_fraction", -0.01)


@pytest.mark.parametrize(
    "text", ["", "latency.p99", "latency.p99>=1", "successful_fraction<=1", "latency.p99<=nan", "a<=1<=2"]
)
def test_what_is_no_gate_is_refused(text: str) -> None:
    with pytest.raises(RequestError) as refused:
        gate_of(text)
    assert refused.value.code == "bad_inference_gate"


def test_a_summary_gives_figures_in_seconds_and_none_where_others_failed() -> None:
    metadata: dict[str, object] = {
        "counts": {"successful": 10, "failed": 0},
        "quantiles": {"ttft_ms": {"p99": 250.0, "mean": {"gap": "zero_reported"}, "std": 1.0}},
        "units": {"ttft_ms": "ms"},
        "rates": {"request_throughput": 2.5},
    }
    found = figures_of_summary(metadata)
    assert found["time_to_first_output.p99"] == Span(0.25, 0.25)
    assert found["successful_requests_per_second"] == Span(2.5, 2.5)
    absent = found["time_to_first_output.mean"]
    assert isinstance(absent, Absent)
    assert absent.detail == "zero_reported"
    failed = figures_of_summary(metadata | {"counts": {"successful": 9, "failed": 1}})["time_to_first_output.p99"]
    assert isinstance(failed, Absent)
    assert failed.gap is CompareGap.UNDEFINED_IN_ARM
