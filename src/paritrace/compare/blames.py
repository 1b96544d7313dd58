"""Records of where differences come from: one blame per differing call, and what they go back to (CP-8)."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from paritrace.compare.figure_rows import Key
from paritrace.compare.flows import FromOrigin
from paritrace.compare.result import Group

Numbers = npt.NDArray[Any]
Root = tuple[str, int]
"""What a difference goes back to: ("call", baseline index) or ("region", stretch)."""


class Blame(NamedTuple):
    """The group of a differing pair, why, what it goes back to, and the slot that decided."""

    group: Group
    cause: str = ""
    root: Root | None = None
    slot: int = -1  # place in the baseline's inputs, or -1 for an output
    outside: FromOrigin | None = None


PRECEDENCE = (Group.REWIRED, Group.PROPAGATES, Group.AFTER_UNALIGNED, Group.OUTSIDE, Group.UNDETERMINED)


class Blames(Mapping[int, Blame]):
    """Blames by the baseline's index, in the order in which the calls ended.

    Most differing calls read nothing but differing outputs of pairs: a blame of one of these `plain` consequences is
    made when it is asked for, and `single` holds all others. While the search goes on, `ended` is how many calls were
    looked at, and what comes later has no blame yet.
    """

    def __init__(self, order: Numbers, num_calls: int) -> None:
        self.order = order
        self.single: dict[int, Blame] = {}
        self.ended = 0
        self.places = np.full(num_calls, -1, np.int64)  # in `order`
        self.places[order] = np.arange(len(order))
        self._place = self.places.data
        self._anchors = np.full(num_calls, -1, np.int64)  # of plain ones: the first that is none, from maker to maker
        self._anchor = self._anchors.data
        self._follow: Callable[[int], Blame] | None = None

    def take_plain(self, calls: Numbers, anchors: Numbers, follow: "Callable[[int], Blame]") -> None:
        """Say which calls are plain consequences, what each goes back to, and how a blame of one is made."""
        self._anchors[calls] = anchors
        self._follow = follow

    def let_go(self) -> None:
        """Forget how blames of plain consequences are made, which refers back to them: these have none from then on."""
        self._follow = None

    def anchors(self, calls: Any) -> Any:
        """Of each of these plain consequences the first call, from maker to maker, that is none; -1 of other calls."""
        return self._anchors[calls]

    def root(self, i: int) -> Root:
        """What a call goes back to: itself, where it has no blame or none that says more."""
        if self._anchor[i] >= 0 and self._place[i] < self.ended:
            i = self._anchor[i]
        blame = self.single.get(i)
        return ("call", i) if blame is None or blame.root is None else blame.root

    def __getitem__(self, i: int) -> Blame:
        found: Blame | None = self.get(i)
        if found is None:
            raise KeyError(i)
        return found

    def get(self, i: int, default: Any = None) -> Any:
        """As of a dict, without an exception on the way."""
        found = self.single.get(i)
        if found is not None:
            return found
        return self._follow(i) if i in self and self._follow is not None else default

    def __contains__(self, i: object) -> bool:
        if not isinstance(i, int | np.integer):
            return False
        place = int(cast("int", i))
        return 0 <= place < len(self._place) and 0 <= self._place[place] < self.ended

    def __iter__(self) -> Iterator[int]:
        return iter(self.order[: self.ended].tolist())

    def __len__(self) -> int:
        return self.ended


@dataclass(slots=True, kw_only=True)
class Origins:
    """All blames of one pair of sessions; regions that originate, by stretch."""

    blames: Blames
    regions: dict[int, int] = field(default_factory=dict[int, int])  # stretch -> the differing pair that showed it
    consequences: Counter[Root] = field(default_factory=Counter[Root])
    states: dict[Key, Blame] = field(default_factory=dict[Key, Blame])  # first differing states that calls may explain
