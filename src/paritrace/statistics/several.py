"""Tests of several hypotheses at once: Holm's procedure (AT-13, IN-17)."""

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Returns p values adjusted by Holm's step-down procedure (1979), in the given order.

    It holds for hypotheses that depend on each other in any way.
    """
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    adjusted = [0.0] * len(p_values)
    reached = 0.0
    for rank, place in enumerate(order):
        reached = max(reached, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = reached
    return tuple(adjusted)
