"""Bases and reasons of links in words for people (IN-7)."""

from typing import assert_never

from paritrace.inference.records import Link
from paritrace.inference.vocabulary import Basis, LinkReason


def because(link: Link) -> str:
    """Return why an activity belongs to its iteration, or why it is not known to which it does."""
    if link.basis is not None:
        return of_basis(link.basis)
    if link.reason is None:
        raise AssertionError("a link has a basis or a reason")
    words = of_reason(link.reason)
    return f"{words} ({link.num_candidates} candidates)" if link.num_candidates > 1 else words


def of_basis(basis: Basis) -> str:
    """Return a basis in words."""
    match basis:
        case Basis.EXACT_ID:
            return "its collector names the iteration, or another activity with the same scoped id does"
        case Basis.SAME_THREAD_RANGE:
            return "its launch lies wholly inside the one innermost range of its own thread"
        case Basis.STEP_RANGE_ANCHOR:
            return "its launch lies wholly inside the one innermost named range of its own thread"
        case _:
            assert_never(basis)


_REASONS = {
    LinkReason.NO_SCOPE: "it names no scope inside which its ids are unique, or no host or process",
    LinkReason.NO_KEY: "it has no correlation id",
    LinkReason.SENTINEL: "its correlation id is a value that stands for none (0, -1, 4294967295, null, empty)",
    LinkReason.NO_CANDIDATE: "nothing that names an iteration has its ids",
    LinkReason.NO_LAUNCH_RECORD: "its trace has no record of its launch",
    LinkReason.OUTSIDE_EVERY_RANGE: "its launch lies inside no range of its own thread",
    LinkReason.AMBIGUOUS: "several fit alike",
    LinkReason.IDS_DISAGREE: "its two ids lead to different iterations",
    LinkReason.DEVICE_DIFFERS: "only work of another device has its ids",
    LinkReason.DANGLING_ITERATION: "its collector names an iteration that nobody reports",
}


def of_reason(reason: LinkReason) -> str:
    """Return a reason in words."""
    return _REASONS[reason]
