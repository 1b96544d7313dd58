"""What a comparison of two sessions says to a person, line by line (SE-15)."""

from collections.abc import Iterator
from pathlib import Path
from shlex import quote

from paritrace.session.directory import CAPTURES
from paritrace.session.segment_comparison import Agreement, Difference, SegmentComparison, Stretch

MOST_LINES = 40  # of stretches; a screen, the rest is in the JSON


def words_of(found: SegmentComparison, base: Path, cand: Path) -> Iterator[str]:
    """Yield the lines of the screen: the first unlike steps, states, every stretch, what to compare next."""
    yield f"[sessions]  {found.base} against {found.cand}"
    yield from (f"            {_difference(one)}" for one in found.differences)
    yield f"[first]     {_first(found)}"
    yield f"[states]    {_states(found)}"
    for place, stretch in enumerate(found.stretches[:MOST_LINES]):
        yield f"{'[steps]' if place == 0 else '':<11} {_steps(stretch.first_step, stretch.end_step)}  {_row(stretch)}"
        yield from (f"              {_difference(one)}" for one in stretch.differences)
    if len(found.stretches) > MOST_LINES:
        yield f"            {len(found.stretches) - MOST_LINES:,} more stretches: --json"
    for one in found.alone:
        side = "baseline" if one.side == "base" else "candidate"
        yield f"            {_steps(one.first_step, one.end_step)}  {side} alone"
    yield from _next(found, base, cand)


def _first(found: SegmentComparison) -> str:
    if not found.stretches:
        return "no step was taken by both"
    unlike = found.first_unlike
    if unlike is None:
        return "all steps that both took were taken under the same configuration, inputs and schedule"
    if unlike.agreement is Agreement.NOT_COMPARABLE:
        return f"from step {unlike.first_step} on it is not known whether conditions are the same"
    return f"conditions part at step {unlike.first_step}: {', '.join(one.what for one in unlike.differences)}"


def _states(found: SegmentComparison) -> str:
    if not found.states:
        return "no step at which both saved a checkpoint: whether the states agree is not known"
    equal, unlike = found.last_equal_state, found.first_unlike_state
    told = [] if equal is None else [f"equal before step {equal.step} ({equal.base.name}, {equal.cand.name})"]
    told += [] if unlike is None else [f"different before step {unlike.step} ({unlike.base.name}, {unlike.cand.name})"]
    return "; ".join(told) or "checkpoints at the same steps, whose contents cannot be compared"


def _row(stretch: Stretch) -> str:
    return f"{stretch.agreement.value.replace('_', ' ')}  (segments {stretch.base_segment} and {stretch.cand_segment})"


def _steps(first: int, end: int | None) -> str:
    if end is None:
        return f"{first}-?"
    return f"{first}" if end == first + 1 else f"{first}-{end - 1}"


def _difference(one: Difference) -> str:
    return f"{one.what}: {one.base} | {one.cand}" + ("" if one.agreement is Agreement.DIFFERENT else "  not comparable")


def _next(found: SegmentComparison, base: Path, cand: Path) -> Iterator[str]:
    """Captures of the same first step are two runs that can be compared call by call."""
    for stretch in found.stretches:
        for ours in stretch.base_captures:
            for theirs in stretch.cand_captures:
                if ours.step == theirs.step:
                    runs = (base / CAPTURES / ours.name, cand / CAPTURES / theirs.name)
                    yield f"[next]      paritrace compare {' '.join(quote(str(run)) for run in runs)}"
                    return
