"""Non-inferiority gates: shown, not shown, or not to be decided by this evidence: pure (IN-17)."""

import re
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from paritrace.errors import RequestError
from paritrace.inference.comparison.designs import Effect, Found
from paritrace.inference.comparison.metrics import lower_is_better
from paritrace.inference.comparison.vocabulary import Design, GateReason, GateVerdict
from paritrace.statistics.records import Interval

_WRITTEN = re.compile(r"(?P<metric>[a-z_]+(?:\.[a-z0-9_]+)?)(?P<sign><=|>=)(?P<margin>[-+]?[0-9]*\.?[0-9]+)\Z")

Effects = Callable[[Sequence[int], Sequence[int], bool], Found]
"""The effect over runs by their places, `True` for the candidate's worst case."""


class Gate(Struct, frozen=True):
    """The candidate is not worse than `margin`: a ratio to the baseline, for fractions a difference."""

    metric: str
    margin: float


class GateOutcome(Struct, frozen=True):
    """What became of a gate. `flips`: runs or blocks without which it would be decided the other way."""

    metric: str
    margin: float
    verdict: GateVerdict
    reason: GateReason | None = None
    flips: tuple[str, ...] = ()


def gate_of(text: str) -> Gate:
    """Returns a gate as it is written: `time_to_first_output.p99<=1.05`, `successful_fraction>=-0.01`.

    Raises:
        RequestError: Refused, `bad_inference_gate`.
    """
    found = _WRITTEN.match(text.replace(" ", ""))
    if found is None:
        raise _bad(text, "write METRIC<=RATIO, for example time_to_first_output.p99<=1.05")
    sign = "<=" if lower_is_better(found["metric"]) else ">="
    if found["sign"] != sign:
        raise _bad(text, f"more of {found['metric']} is {'worse' if sign == '<=' else 'better'}: write {sign}")
    return Gate(found["metric"], float(found["margin"]))


def _bad(text: str, fix: str) -> RequestError:
    return RequestError(f"{text[:200]!r} is no gate", code="bad_inference_gate", fix=fix)


def outcome(
    gate: Gate, effects: Effects, *, design: Design, baseline: Sequence[str], candidate: Sequence[str]
) -> GateOutcome:
    """Returns what became of a gate.

    It passes where the interval lies on the right side of the margin in the candidate's worst case, and fails where it
    does not even in its best case. What a single run or block decides is not decided.

    Args:
        baseline: names of its runs; in paired blocks both arms have the same number, in the same order.
    """
    every = list(range(len(baseline))), list(range(len(candidate)))
    worst, best = (_decided(gate, effects(*every, bad)) for bad in (True, False))
    if worst is None or best is None:
        return GateOutcome(gate.metric, gate.margin, GateVerdict.NOT_EVALUABLE, GateReason.NO_FIGURE)
    if worst != best:
        return GateOutcome(gate.metric, gate.margin, GateVerdict.NOT_EVALUABLE, GateReason.MISSING_DECIDES)
    flips: list[str] = []
    for name, kept in _without_one(design, baseline, candidate):
        without = _decided(gate, effects(*kept, True))
        if without is None:
            return GateOutcome(gate.metric, gate.margin, GateVerdict.NOT_EVALUABLE, GateReason.TOO_FEW_RUNS)
        if without != worst:
            flips.append(name)
    if flips:
        reason = GateReason.DECISION_UNSTABLE
        return GateOutcome(gate.metric, gate.margin, GateVerdict.NOT_EVALUABLE, reason, tuple(flips))
    return GateOutcome(gate.metric, gate.margin, GateVerdict.PASS if worst else GateVerdict.FAIL)


def _without_one(
    design: Design, baseline: Sequence[str], candidate: Sequence[str]
) -> Iterator[tuple[str, tuple[list[int], list[int]]]]:
    first, second = list(range(len(baseline))), list(range(len(candidate)))
    for place, name in enumerate(baseline):
        rest = [one for one in first if one != place]
        yield name, (rest, rest if design is Design.PAIRED_BLOCKS else second)
    if design is Design.INDEPENDENT:
        for place, name in enumerate(candidate):
            yield name, (first, [one for one in second if one != place])


def _decided(gate: Gate, found: Found) -> bool | None:
    """Whether the interval shows that the candidate is not worse than the margin; None without an interval."""
    interval = _interval_of(found)
    if interval is None:
        return None
    return interval.high <= gate.margin if lower_is_better(gate.metric) else interval.low >= gate.margin


def _interval_of(found: Found) -> Interval | None:
    """The interval of an effect, None where it has none."""
    if not isinstance(found, Effect) or not isinstance(found.interval, Interval):
        return None
    return found.interval
