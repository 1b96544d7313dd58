"""What pairs that are not plainly equal show: few ways to differ, and a number of one for each call (CP-7, CP-17)."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[Any]


class Verdict(NamedTuple):
    """What a pair that is not plainly equal shows: places in the slot lists of the baseline's call."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    scalars: bool
    compared: int
    unseen_inputs: tuple[int, ...]  # an input that could not be compared: the call cannot be said to originate anything
    unseen_outputs: tuple[int, ...]  # outputs that could not be compared
    collective: bool = False  # another group, reduction, root, peer or bucket: it computes something else

    @property
    def differs(self) -> bool:
        return bool(self.inputs or self.outputs or self.scalars or self.collective)


class Verdicts(Mapping[int, Verdict]):
    """Verdicts by the baseline's index, rising. `codes`: 0 for a call without one, else 1 + its place in `kinds`."""

    def __init__(self, num_calls: int) -> None:
        self.codes = np.zeros(num_calls, np.int32)
        self.kinds: list[Verdict] = []
        self._single = self.codes.data
        self._known: dict[Verdict, int] = {}

    def code(self, verdict: Verdict) -> int:
        """The number of a verdict, a new one where it was not given before."""
        known = self._known.get(verdict)
        if known is None:
            self.kinds.append(verdict)
            known = self._known[verdict] = len(self.kinds)
        return known

    def __setitem__(self, i: int, verdict: Verdict) -> None:
        self._single[i] = self.code(verdict)

    def __getitem__(self, i: int) -> Verdict:
        found: Verdict | None = self.get(i)
        if found is None:
            raise KeyError(i)
        return found

    def get(self, i: int, default: Any = None) -> Any:
        """As of a dict, without an exception on the way."""
        code = self._single[i] if 0 <= i < len(self._single) else 0
        return self.kinds[code - 1] if code else default

    def places(self) -> Numbers:
        """The calls with a verdict, rising."""
        return np.flatnonzero(self.codes)

    def __iter__(self) -> Iterator[int]:
        return iter(self.places().tolist())

    def __len__(self) -> int:
        return int(np.count_nonzero(self.codes))

    def told(self, values: list[Any], dtype: type[Any]) -> Numbers:
        """Of each call the value that `values` gives to its verdict's kind; 0 where it has none."""
        return np.array([0, *values], dtype)[self.codes]
