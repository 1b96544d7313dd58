"""Notes which ranks show the same value of something: batches, generators, numbers of collectives (CP-25)."""

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

from paritrace.compare.checks_states import ranks_of

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value", bound=Hashable)


class Sharing(Generic[Key, Value]):
    """For each key, which ranks show which value; memory grows with keys and with the distinct values of each."""

    def __init__(self) -> None:
        self._ranks: dict[Key, dict[Value, int]] = {}

    def see(self, rank: int, key: Key, value: Value, /) -> None:
        """Takes what one rank shows."""
        values = self._ranks.setdefault(key, {})
        values[value] = values.get(value, 0) | 1 << rank

    def __iter__(self) -> Iterator[Key]:
        return iter(self._ranks)

    def __contains__(self, key: Key) -> bool:
        return key in self._ranks

    def sides(self, key: Key, /, *, among: int) -> list[tuple[int, ...]]:
        """Returns the ranks among those bits, those that show the same value together."""
        found = (tuple(ranks_of(bits & among)) for bits in self._ranks.get(key, {}).values())
        return sorted(side for side in found if side)

    def values(self, key: Key, /, *, among: int) -> dict[tuple[int, ...], Value]:
        """Returns the same with the value of each side."""
        found = {tuple(ranks_of(bits & among)): value for value, bits in self._ranks.get(key, {}).items()}
        return {side: found[side] for side in sorted(found) if side}


def bits_of(ranks: tuple[int, ...], /) -> int:
    """Returns ranks as bits."""
    return sum(1 << rank for rank in set(ranks))
