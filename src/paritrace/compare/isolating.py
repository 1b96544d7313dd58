"""From the judged calls of all modules to those that differ by themselves (CP-26, isolate)."""

from collections.abc import Sequence

from paritrace.compare.judged_result import Functions, JudgedCall


def apart_by_themselves(calls: Sequence[JudgedCall], /) -> tuple[int, ...]:
    """Returns the places of the calls whose function differs, without containers of such a call.

    A container computes with the modules inside it, so it differs where one of them does: whether it adds something
    of its own cannot be seen then, and nothing is claimed.
    """
    different = [place for place, call in enumerate(calls) if call.functions is Functions.DIFFERENT]
    return tuple(
        place
        for place in different
        if not any(_holds(calls[place], calls[other]) for other in different if other != place)
    )


def holding(calls: Sequence[JudgedCall], /) -> tuple[int, ...]:
    """Returns the places of different calls that are explained, in part or whole, by one inside them."""
    alone = set(apart_by_themselves(calls))
    return tuple(
        place for place, call in enumerate(calls) if call.functions is Functions.DIFFERENT and place not in alone
    )


def _holds(outer: JudgedCall, inner: JudgedCall) -> bool:
    same_place = (outer.rank, outer.step) == (inner.rank, inner.step)
    inside = outer.module_baseline == "" or inner.module_baseline.startswith(f"{outer.module_baseline}.")
    return same_place and inside and inner.module_baseline != outer.module_baseline
