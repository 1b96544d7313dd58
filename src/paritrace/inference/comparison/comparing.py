"""Puts two arms of runs against each other: compatibility, design, metrics, gates, cautions: pure (IN-17, IN-27)."""

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from paritrace.errors import EvidenceError
from paritrace.inference.comparison.absence import Absent
from paritrace.inference.comparison.compatibility import compatibility, overall
from paritrace.inference.comparison.conditions import BLOCK, SATURATED, Condition
from paritrace.inference.comparison.designs import Found, effect
from paritrace.inference.comparison.gates import Gate, GateOutcome, outcome
from paritrace.inference.comparison.metrics import Figure, Span, is_timed, lower_is_better, scale_of
from paritrace.inference.comparison.objectives import Objective
from paritrace.inference.comparison.result import ComparedMetric, ComparedRun, InferenceComparison
from paritrace.inference.comparison.vocabulary import (
    CompareGap,
    Compatibility,
    Design,
    GateReason,
    GateVerdict,
    Scale,
)
from paritrace.statistics.several import holm

LEVEL = 0.95
CASE_ABSENT = Absent(CompareGap.UNDEFINED_IN_ARM, "the best case has no figure")


class ArmRun(Struct, frozen=True):
    """One run of an arm with its conditions; `scheduled`: its latencies begin when a request was to be sent."""

    run: ComparedRun
    fields: dict[str, Condition]
    scheduled: bool


class Asked(Struct, frozen=True, kw_only=True):
    """How to compare. `design` None: paired where every run names its block and both arms have the same ones.

    `objectives`: those that the runs were loaded with; `ratio`: the scale of everything that is no fraction.
    """

    design: Design | None = None
    treatments: tuple[str, ...] = ()
    gates: tuple[Gate, ...] = ()
    objectives: tuple[Objective, ...] = ()
    ratio: Scale = Scale.LOG_RATIO
    level: float = LEVEL


def compared(baseline: Sequence[ArmRun], candidate: Sequence[ArmRun], asked: Asked) -> InferenceComparison:
    """Returns the comparison of two arms.

    Raises:
        EvidenceError: Refused, `blocks_do_not_match` where pairs were asked for and runs have none.
    """
    fields = compatibility(
        [one.fields for one in baseline], [one.fields for one in candidate], treatments=asked.treatments
    )
    status = overall(fields)
    design, baseline, candidate = _designed(baseline, candidate, asked.design)
    arms = _Arms(baseline, candidate, asked, design=design, incompatible=status is Compatibility.INCOMPATIBLE)
    return InferenceComparison(
        compatibility=status,
        fields=fields,
        design=design,
        ratio=asked.ratio,
        objectives=asked.objectives,
        level=asked.level,
        baseline=tuple(one.run for one in baseline),
        candidate=tuple(one.run for one in candidate),
        metrics=_with_holm([arms.metric(name) for name in arms.names()]),
        gates=tuple(arms.gate(gate) for gate in asked.gates),
        cautions=tuple(_cautions(baseline, candidate, status)),
    )


def _designed(
    baseline: Sequence[ArmRun], candidate: Sequence[ArmRun], asked: Design | None
) -> tuple[Design, Sequence[ArmRun], Sequence[ArmRun]]:
    first, second = _by_block(baseline), _by_block(candidate)
    pairs = first is not None and second is not None and first.keys() == second.keys()
    if asked is Design.PAIRED_BLOCKS and not pairs:
        raise EvidenceError(
            "the runs of the two arms do not name the same blocks, each once",
            code="blocks_do_not_match",
            fix=f"state {BLOCK} in each run's inference-conditions.json, or compare with --design independent",
        )
    if not pairs or asked is Design.INDEPENDENT or first is None or second is None:
        return Design.INDEPENDENT, baseline, candidate
    order = sorted(first)
    return Design.PAIRED_BLOCKS, [first[name] for name in order], [second[name] for name in order]


def _by_block(arm: Sequence[ArmRun]) -> dict[str, ArmRun] | None:
    """The runs of an arm by block; None where one has none, or two have the same."""
    found = {one.run.block: one for one in arm if one.run.block is not None}
    return {str(name): one for name, one in found.items()} if found and len(found) == len(arm) else None


class _Arms:
    """Two arms in the order of their design."""

    def __init__(
        self,
        baseline: Sequence[ArmRun],
        candidate: Sequence[ArmRun],
        asked: Asked,
        *,
        design: Design,
        incompatible: bool,
    ) -> None:
        self._baseline, self._candidate = baseline, candidate
        self._asked, self._design, self._incompatible = asked, design, incompatible
        self._saturated = any(_saturated(one) for one in (*baseline, *candidate))

    def names(self) -> list[str]:
        """Metrics that a run has a figure for, or a reason why it has none beyond that nobody recorded it."""
        runs = (*self._baseline, *self._candidate)
        return sorted({name for one in runs for name, found in one.run.figures.items() if _is_told(found)})

    def metric(self, name: str) -> ComparedMetric:
        every = list(range(len(self._baseline))), list(range(len(self._candidate)))
        worst, best = (self.effect(name, *every, worst=bad) for bad in (True, False))
        p_value = _p_value(worst, best)
        return ComparedMetric(name, worst, best, p_value, p_value)

    def effect(self, name: str, baseline: Sequence[int], candidate: Sequence[int], *, worst: bool) -> Found:
        """The effect over some runs; `worst`: the candidate's bounds at their bad end, the baseline's at their good."""
        if self._incompatible:
            return Absent(CompareGap.INCOMPATIBLE)
        if self._saturated and is_timed(name):
            return Absent(CompareGap.CLIENT_SATURATED)
        high_is_bad = lower_is_better(name)
        first = _values([self._baseline[place] for place in baseline], name, high=worst is not high_is_bad)
        second = _values([self._candidate[place] for place in candidate], name, high=worst is high_is_bad)
        if isinstance(first, Absent):
            return first
        if isinstance(second, Absent):
            return second
        scale = scale_of(name, ratio=self._asked.ratio)
        return effect(first, second, scale=scale, design=self._design, level=self._asked.level)

    def gate(self, gate: Gate) -> GateOutcome:
        if self._incompatible:
            return GateOutcome(gate.metric, gate.margin, GateVerdict.NOT_EVALUABLE, GateReason.INCOMPATIBLE)
        return outcome(
            gate,
            lambda baseline, candidate, worst: self.effect(gate.metric, baseline, candidate, worst=worst),
            design=self._design,
            baseline=[_named(one) for one in self._baseline],
            candidate=[_named(one) for one in self._candidate],
        )


def _p_value(worst: Found, best: Found) -> float | Absent:
    """The p value of no difference in both cases; where they lie on either side, a case between them may be none."""
    if isinstance(worst, Absent) or isinstance(best, Absent):
        return worst if isinstance(worst, Absent) else CASE_ABSENT
    if isinstance(worst.p_value, Absent) or isinstance(best.p_value, Absent):
        return worst.p_value if isinstance(worst.p_value, Absent) else CASE_ABSENT
    none = 0.0 if worst.scale is Scale.DIFFERENCE else 1.0
    if worst != best and (worst.value - none) * (best.value - none) <= 0:
        return 1.0
    return max(worst.p_value, best.p_value)


def _with_holm(metrics: Sequence[ComparedMetric]) -> tuple[ComparedMetric, ...]:
    p_values = [one.p_value for one in metrics if not isinstance(one.p_value, Absent)]
    adjusted = iter(holm(p_values))
    return tuple(one if isinstance(one.p_value, Absent) else replace(one, p_holm=next(adjusted)) for one in metrics)


def _values(arm: Sequence[ArmRun], name: str, *, high: bool) -> list[float] | Absent:
    """The values of an arm's runs; one run without a value leaves the arm without, and is named."""
    values: list[float] = []
    for one in arm:
        found: Figure = one.run.figures.get(name, Absent(CompareGap.NOT_RECORDED))
        if isinstance(found, Absent):
            why = found.gap.value + (f": {found.detail}" if found.detail else "")
            return Absent(CompareGap.UNDEFINED_IN_ARM, f"run {one.run.run_id}: {why}")
        values.append(found.high if high else found.low)
    return values


def _is_told(found: Figure) -> bool:
    return isinstance(found, Span) or found.gap is not CompareGap.NOT_RECORDED or found.detail is not None


def _saturated(one: ArmRun) -> bool:
    return one.fields.get(SATURATED, Condition(False)).value is True


def _named(one: ArmRun) -> str:
    return one.run.block if one.run.block is not None else one.run.path


def _cautions(baseline: Sequence[ArmRun], candidate: Sequence[ArmRun], status: Compatibility) -> Iterator[str]:
    runs = (*baseline, *candidate)
    if status is Compatibility.INCOMPATIBLE:
        yield "the arms are incompatible: no figure of theirs is compared"
    if status is Compatibility.UNVERIFIED:
        yield "not every condition is known to be the same: a difference may be theirs"
    if not all(one.scheduled for one in runs):
        yield "service_time_only: when requests were to be sent is not recorded; waiting in the client is not in it"
    if any(_saturated(one) for one in runs):
        yield "a client could not keep up: its latencies are not the server's, and none is compared"
    elif not all(SATURATED in one.fields for one in runs):
        yield f"whether the client kept up is not stated ({SATURATED})"
    if any(one.run.summary_only for one in runs):
        yield "some runs are known by a client's summary alone: quantiles as it made them, of successful requests"
    yield "intervals are over runs; requests of one run are not independent of each other"
