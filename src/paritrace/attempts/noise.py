"""How much a configuration differs from itself: the floor below which a difference says nothing (AT-22)."""

from msgspec import Struct

from paritrace.attempts.result import PairOf
from paritrace.attempts.statistics.records import Absent, Estimate, NotEstimable

FEWEST_REPEATS = 4  # below it "as large as any repeat" is too often chance to be a rate (N-13)


class RepeatOf(Struct, frozen=True):
    """The baseline against one repeat of itself."""

    repeat: str
    num_tasks: int
    difference: Estimate | Absent
    bounds: tuple[float, float] | Absent


class Noise(Struct, frozen=True):
    """The noise floor of a harness, as far as its repeats show it.

    `largest`: the largest difference, without its sign, of the baseline from a repeat. `num_as_large`: repeats that
    differ as much as the candidate or more. `chance_at_most`: of exchangeable repeats, how often none of them would
    reach a difference that is no more than noise; a gap with fewer than four.
    """

    repeats: tuple[RepeatOf, ...]
    largest: float | Absent
    difference: float | Absent
    num_as_large: int | Absent
    chance_at_most: float | Absent
    beyond: bool | Absent


def noise_of(candidate: PairOf, repeats: tuple[PairOf, ...]) -> Noise:
    """Returns what repeats of the baseline say of the difference to a candidate.

    Args:
        candidate: the baseline against the candidate.
        repeats: the baseline against each repeat of itself.
    """
    told = tuple(_repeat(one) for one in repeats)
    sizes = [abs(one.difference.value) for one in told if isinstance(one.difference, Estimate)]
    unknown = Absent(NotEstimable.NO_DATA)
    if not sizes or not isinstance(candidate.difference, Estimate):
        known = candidate.difference.value if isinstance(candidate.difference, Estimate) else unknown
        return Noise(told, max(sizes) if sizes else unknown, known, unknown, unknown, unknown)
    size = abs(candidate.difference.value)
    as_large = sum(one >= size for one in sizes)
    few = len(sizes) < FEWEST_REPEATS
    return Noise(
        repeats=told,
        largest=max(sizes),
        difference=candidate.difference.value,
        num_as_large=as_large,
        chance_at_most=Absent(NotEstimable.TOO_FEW_ATTEMPTS, f"{len(sizes)} of {FEWEST_REPEATS} repeats")
        if few
        else (as_large + 1) / (len(sizes) + 1),
        beyond=as_large == 0,
    )


def _repeat(pair: PairOf) -> RepeatOf:
    return RepeatOf(
        repeat=pair.candidate,
        num_tasks=len(pair.matching.matched),
        difference=pair.difference,
        bounds=pair.bounds,
    )
