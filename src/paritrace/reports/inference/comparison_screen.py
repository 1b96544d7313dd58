"""The screen of a comparison of two arms of inference runs (IN-17)."""

from collections.abc import Iterator, Sequence

from paritrace.inference.comparison.absence import Absent
from paritrace.inference.comparison.designs import Effect, Found
from paritrace.inference.comparison.gates import GateOutcome
from paritrace.inference.comparison.metrics import ATTAINED
from paritrace.inference.comparison.populations import Bounds, Populations
from paritrace.inference.comparison.result import ComparedMetric, ComparedRun, InferenceComparison
from paritrace.inference.comparison.vocabulary import Compatibility, Design, GateVerdict, Scale
from paritrace.reports.harmless import harmless
from paritrace.reports.wording import count
from paritrace.statistics.records import Interval

LEAST_P = 0.0001
MOST_RUNS_SHOWN = 20  # of an arm; all stand in the document


def comparison_screen(found: InferenceComparison) -> str:
    """Returns the screen: conditions, populations, metrics, gates, cautions."""
    lines = [
        _headline(found),
        "",
        *_fields(found),
        "",
        *_arm("baseline", found.baseline),
        *_arm("candidate", found.candidate),
    ]
    lines += ["", *_objectives(found), _design(found), *(_metric(one) for one in found.metrics)]
    if found.gates:
        lines += ["", "gates", *(_gate(one) for one in found.gates)]
    return "\n".join([*lines, "", *(f"note: {one}" for one in found.cautions)])


def _headline(found: InferenceComparison) -> str:
    runs = f"{count(len(found.baseline), 'run')} against {count(len(found.candidate), 'run')}"
    return f"{runs}: conditions {found.compatibility.value}"


def _fields(found: InferenceComparison) -> Iterator[str]:
    """Every field that is not plainly compatible, with its values; the others are counted."""
    odd = [one for one in found.fields if one.status is not Compatibility.COMPATIBLE or one.detail]
    for one in odd:
        values = f"{_values(one.baseline)} | {_values(one.candidate)}"
        detail = f" ({one.detail})" if one.detail else ""
        yield f"  {one.status.value:<12} {one.name} [{one.kind.value}]: {values}{detail}"
    yield f"  compatible   {count(len(found.fields) - len(odd), 'further field')}"


def _values(values: Sequence[str]) -> str:
    return ", ".join(harmless(one)[:60] for one in values) or "not recorded"


def _arm(name: str, runs: Sequence[ComparedRun]) -> Iterator[str]:
    yield f"{name}"
    for one in runs[:MOST_RUNS_SHOWN]:
        block = f", block {harmless(one.block)}" if one.block is not None else ""
        yield f"  {harmless(one.path)} ({harmless(one.source)}{block}): {_requests(one.populations)}"
        yield from _attained(one)
    if len(runs) > MOST_RUNS_SHOWN:
        yield f"  and {count(len(runs) - MOST_RUNS_SHOWN, 'further run')}"


def _attained(one: ComparedRun) -> Iterator[str]:
    for name, figure in one.figures.items():
        if name.partition(".")[0] != ATTAINED:
            continue
        if isinstance(figure, Absent):
            yield f"    {name}: no figure ({figure.gap.value})"
        else:
            bounds = f"{figure.low:.4f}" if figure.low == figure.high else f"{figure.low:.4f} to {figure.high:.4f}"
            yield f"    {name}: {bounds} of what was offered"


def _objectives(found: InferenceComparison) -> Iterator[str]:
    for one in found.objectives:
        targets = " and ".join(f"{target.metric} <= {target.seconds:g} s" for target in one.targets)
        yield f"objective {one.name}: {targets}"


def _requests(found: Populations) -> str:
    named = [f"{_bounds(found.offered)} offered", f"{_bounds(found.successful)} successful"]
    others = {
        "failed": found.failed,
        "timed out": found.timed_out,
        "cancelled": found.cancelled,
        "rejected": found.rejected,
        "unreachable": found.unreachable,
        "of unknown delivery": found.delivery_unknown,
        "dropped": found.dropped,
    }
    named += [f"{_bounds(one)} {name}" for name, one in others.items() if one.high]
    if found.num_incomplete:
        named.append(f"{found.num_incomplete:,} without an end")
    if found.num_unknown:
        named.append(f"{found.num_unknown:,} unknown")
    return ", ".join(named)


def _bounds(one: Bounds) -> str:
    return f"{one.low:,}" if one.low == one.high else f"{one.low:,} to {one.high:,}"


def _design(found: InferenceComparison) -> str:
    percent = f"{found.level:.0%}"
    ratios = "" if found.ratio is Scale.LOG_RATIO else "; ratios of means, Fieller intervals"
    match found.design:
        case Design.PAIRED_BLOCKS:
            return f"candidate against baseline, paired by block, {percent} t intervals over blocks{ratios}"
        case Design.INDEPENDENT:
            return (
                f"candidate against baseline, independent runs, {percent} Welch intervals with the smaller df{ratios}"
            )


def _metric(one: ComparedMetric) -> str:
    by_chance = f", p {_p(one.p_value)}, after Holm {_p(one.p_holm)}" if not isinstance(one.p_value, Absent) else ""
    if one.worst == one.best:
        return f"  {one.metric}: {_effect(one.worst)}{by_chance}"
    return f"  {one.metric}: at worst {_effect(one.worst)}; at best {_effect(one.best)}{by_chance}"


def _p(value: float | Absent) -> str:
    """A p value, also where it is absent beside one that is not."""
    if isinstance(value, Absent):
        return value.gap.value
    return "< 0.0001" if value < LEAST_P else f"{value:.4f}"


def _effect(found: Found) -> str:
    if not isinstance(found, Effect):
        return f"no figure ({found.gap.value}{': ' + harmless(found.detail) if found.detail else ''})"
    value = f"{found.value:+.4g}" if found.scale is Scale.DIFFERENCE else f"x {found.value:.4g}"
    if isinstance(found.interval, Interval):
        return f"{value} [{found.interval.low:.4g}, {found.interval.high:.4g}]"
    return f"{value}, no interval ({found.interval.gap.value})"


def _gate(one: GateOutcome) -> str:
    if one.verdict is not GateVerdict.NOT_EVALUABLE:
        return f"  {one.verdict.value}: {one.metric}, margin {one.margin:g}"
    why = one.reason.value if one.reason is not None else ""
    flips = (
        f": without {', '.join(harmless(name) for name in one.flips[:5])} it is decided the other way"
        if one.flips
        else ""
    )
    return f"  not_evaluable: {one.metric}, margin {one.margin:g} ({why}{flips})"
