"""The slots of one side in words that both sides share: equal words mean equal evidence (CP-7, CP-17)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from paritrace.compare.call_columns import CallColumns
from paritrace.compare.lookups import Interner, looked_up
from paritrace.evidence.call_batches import narrow
from paritrace.evidence.gaps import CaptureGap, Gap

Numbers = npt.NDArray[Any]
_MIX = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
_FACTORS = (0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotWords:
    """Columns of slots in the order of `CallColumns`, and the scalars of each call."""

    names: Numbers
    kinds: Numbers
    bits: Numbers  # uint64
    odd: Numbers  # 0, or a number of a value that is no fingerprint
    gaps: Numbers  # whether it was not captured at all
    unwritten: Numbers  # whether that is because nobody had written its bytes (CA-35)
    scalars: Numbers  # by call
    first: Numbers
    middle: Numbers

    def input_counts(self) -> Numbers:
        """How many inputs each call has."""
        return self.middle - self.first[:-1]

    def counted(self, slots: Numbers, *, inputs: bool) -> Numbers:
        """Of each call how many of its inputs (or outputs) are true in `slots`."""
        totals = np.concatenate(([0], np.cumsum(slots)))
        start, end = (self.first[:-1], self.middle) if inputs else (self.middle, self.first[1:])
        counts: Numbers = totals[end] - totals[start]
        return counts

    def fingerprints(self) -> Numbers:
        """One uint64 for scalars and inputs of each call: equal where they are equal, else equal in 2**-64 of cases.

        That is the strength of a fingerprint itself, of which one equal pair is taken for equal bytes as well.
        """
        with np.errstate(over="ignore"):
            word = _mixed(self.names.astype(np.uint64) * np.uint64(_FACTORS[0]) + self._places())
            word = _mixed(word ^ (self.kinds.astype(np.uint64) * np.uint64(_FACTORS[1]) + self.odd.astype(np.uint64)))
            word = _mixed(word + self.bits * np.uint64(_FACTORS[2]))
            whole = self._totals(word)
            scalars = (self.scalars + 1).astype(np.uint64) * np.uint64(_FACTORS[3])
            found: Numbers = _mixed(_mixed(whole) ^ scalars + self.input_counts().astype(np.uint64))
            return found

    def input_sums(self, words: Numbers) -> Numbers:
        """One uint64 for the words of each call's inputs that are not 0, at their places; 0 where there is none."""
        with np.errstate(over="ignore"):
            word = _mixed(words * np.uint64(_FACTORS[0]) + self._places())
            return self._totals(np.where(words != 0, word, np.uint64(0)))

    def _places(self) -> Numbers:
        """Which slot of its call each one is."""
        places: Numbers = np.arange(len(self.bits)) - np.repeat(self.first[:-1], np.diff(self.first))
        return places.astype(np.uint64)

    def _totals(self, words: Numbers) -> Numbers:
        """The sum over each call's inputs."""
        totals = np.concatenate((np.zeros(1, np.uint64), np.cumsum(words, dtype=np.uint64)))
        found: Numbers = totals[self.middle] - totals[self.first[:-1]]
        return found


def slot_words(
    calls: CallColumns, *, names: dict[int, int], kinds: dict[int, int], scalars: dict[int, int], odd: Interner
) -> SlotWords:
    """The slots of all calls, told by tables from this side's ids to shared words."""
    codes = {0: 0} | {place: odd(value) + 1 for place, value in enumerate(calls.odd_values, 1)}
    gaps = {0: 0} | {place: int(not isinstance(value, str)) for place, value in enumerate(calls.odd_values, 1)}
    unwritten = {0: 0} | {place: int(_is_unwritten(value)) for place, value in enumerate(calls.odd_values, 1)}
    return SlotWords(
        names=narrow(looked_up(calls.column("name"), names)),
        kinds=narrow(looked_up(calls.column("kind"), kinds)),
        bits=calls.column("bits"),
        odd=narrow(looked_up(calls.column("odd"), codes)),
        gaps=looked_up(calls.column("odd"), gaps).astype(np.bool_),
        unwritten=looked_up(calls.column("odd"), unwritten).astype(np.bool_),
        scalars=looked_up(calls.column("scalars"), scalars),
        first=calls.column("first"),
        middle=calls.column("middle"),
    )


def _is_unwritten(value: str | Gap[CaptureGap]) -> bool:
    return isinstance(value, Gap) and value.gap is CaptureGap.UNINITIALISED


def _mixed(words: Numbers) -> Numbers:
    """Spread every bit over all others (the finaliser of splitmix64)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(_MIX[0])
    words = (words ^ (words >> np.uint64(27))) * np.uint64(_MIX[1])
    mixed: Numbers = words ^ (words >> np.uint64(31))
    return mixed
