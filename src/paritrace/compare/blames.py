"""Records of where differences come from: one blame per differing call, and what they go back to (CP-8)."""

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from paritrace.compare.digests import Key
from paritrace.compare.flows import FromOrigin
from paritrace.compare.result import Group

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


@dataclass(slots=True, kw_only=True)
class Origins:
    """All blames of one pair of sessions, by the baseline's index; regions that originate, by stretch."""

    blames: dict[int, Blame] = field(default_factory=dict[int, Blame])
    regions: dict[int, int] = field(default_factory=dict[int, int])  # stretch -> the differing pair that showed it
    consequences: Counter[Root] = field(default_factory=Counter[Root])
    states: dict[Key, Blame] = field(default_factory=dict[Key, Blame])  # first differing states that calls may explain
