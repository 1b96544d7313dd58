"""A figure that may be known in part, and sums of such figures with their coverage (AT-6, AT-9)."""

from collections import Counter
from collections.abc import Iterable, Sequence
from math import fsum

from msgspec import Struct

from paritrace.attempts.gaps import AttemptGap
from paritrace.evidence.coverage import Coverage, CoverageState, ExpectedGap
from paritrace.evidence.gaps import Gap

UNVERIFIED = frozenset({AttemptGap.ATTEMPT_LIST_UNVERIFIED, AttemptGap.REQUEST_LIST_UNVERIFIED})


class Figure(Struct, frozen=True):
    """A figure that is not negative: at least `low`, at most `high` (None: no upper bound is known).

    It is known where both are the same. `gaps`: why it is not known, or not known to be all.
    """

    low: float
    high: float | None
    gaps: tuple[AttemptGap, ...] = ()

    @property
    def known(self) -> bool:
        """Whether it is one number."""
        return self.low == self.high


def known(value: float, *gaps: AttemptGap) -> Figure:
    """Returns a figure that is one number; `gaps` say what keeps it from being all there is."""
    return Figure(value, value, gaps)


def unknown(*gaps: AttemptGap, low: float = 0) -> Figure:
    """Returns a figure without an upper bound."""
    return Figure(low, None, gaps)


def added(figures: Sequence[Figure], *gaps: AttemptGap) -> Figure:
    """Returns the sum of figures, in whatever order they come: floats are added exactly, then rounded once.

    `gaps` are reasons of the whole beside those of its parts.
    """
    if len(figures) == 1:
        return _with_gaps(figures[0], gaps)
    return _with_gaps(_added(list(figures)), gaps)


def _with_gaps(figure: Figure, gaps: tuple[AttemptGap, ...]) -> Figure:
    more = tuple(gap for gap in gaps if gap not in figure.gaps)
    return Figure(figure.low, figure.high, tuple(sorted((*figure.gaps, *more)))) if more else figure


def _added(listed: list[Figure]) -> Figure:
    highs = [one.high for one in listed if one.high is not None]
    gaps = sorted({gap for one in listed for gap in one.gaps})
    return Figure(_sum(one.low for one in listed), _sum(highs) if len(highs) == len(listed) else None, tuple(gaps))


class Sum(Struct, frozen=True):
    """A sum over attempts with its coverage (AT-9).

    `observed_sum` adds the attempts whose figure is one number. `low` and `high` bound the sum over all listed ones;
    `high` is None where one of them has no upper bound. `coverage` counts attempts, `gaps` in it too.
    """

    observed_sum: float
    low: float
    high: float | None
    coverage: Coverage
    state: CoverageState


class Summing:
    """Adds figures as they come; the sum does not depend on their order."""

    def __init__(self) -> None:
        self._known: list[float] = []
        self._lows: list[float] = []
        self._highs: list[float] = []
        self._num_unbounded = 0
        self._gaps: Counter[str] = Counter()

    def add(self, figure: Figure) -> None:
        """Takes the figure of one attempt."""
        self._gaps.update(figure.gaps)
        if figure.known:
            self._known.append(figure.low)
            return
        self._lows.append(figure.low)
        if figure.high is None:
            self._num_unbounded += 1
        else:
            self._highs.append(figure.high)

    def note(self, gap: AttemptGap, count: int = 1) -> None:
        """Takes a gap that belongs to the whole list and to no single attempt."""
        self._gaps[gap] += count

    def result(self, *, declared: bool) -> Sum:
        """Returns the sum; `declared`: the list of attempts was declared complete.

        A gap of any kind prevents a complete total, and so does a list that nobody declared complete.
        """
        observed = len(self._known)
        listed = observed + len(self._lows)
        gaps: Counter[str] = Counter({str(reason): count for reason, count in self._gaps.items() if count})
        if not declared:
            gaps[AttemptGap.ATTEMPT_LIST_UNVERIFIED] = 1
        complete = declared and observed == listed and not gaps
        coverage = Coverage(
            observed=observed,
            expected=listed if declared else Gap(ExpectedGap.NOT_DECLARED, f"{listed} are listed"),
            complete=complete,
            gaps=dict(sorted(gaps.items())),
        )
        bounded = complete or (declared and not self._num_unbounded and set(gaps) <= _BOUNDED)
        return Sum(
            observed_sum=_sum(self._known),
            low=_sum([*self._known, *self._lows]),
            high=_sum([*self._known, *self._highs]) if bounded else None,
            coverage=coverage,
            state=_state(complete, short=observed != listed, gaps=set(gaps)),
        )


_BOUNDED: frozenset[str] = frozenset({AttemptGap.CONVENTION_UNKNOWN})  # both readings are known: so is the larger


def _state(complete: bool, *, short: bool, gaps: set[str]) -> CoverageState:
    if complete:
        return CoverageState.COMPLETE
    return CoverageState.INCOMPLETE if short or gaps - UNVERIFIED else CoverageState.UNVERIFIED


def _sum(values: Iterable[float]) -> float:
    """Returns the exact sum, as an int where all are whole numbers."""
    listed = list(values)
    return sum(listed) if all(isinstance(one, int) for one in listed) else fsum(listed)
