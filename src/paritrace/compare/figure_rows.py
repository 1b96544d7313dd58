"""Figures of steps, row by row: those of one group at one moment share all of their key but the name (PF-10)."""

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from typing import NamedTuple, cast

Head = tuple[int, int, str, str]
"""Step, micro-batch, moment, group."""

Key = tuple[int, int, str, str, str]
"""Step, micro-batch, moment, group, name."""

Values = dict[str, str | None]
NOWHERE = -1


class DigestDifference(NamedTuple):
    """One figure of a step that differs, in the words it was recorded in."""

    step: int
    microbatch: int
    moment: str
    group: str
    name: str
    baseline: str
    candidate: str
    at: int = NOWHERE  # `left` of the baseline's call before it
    other_at: int = NOWHERE  # and of the candidate's


class FigureRows:
    """The figures that one side recorded, None where it could not state one; of two for one key the later counts."""

    def __init__(self) -> None:
        self.rows: dict[Head, Values] = {}
        self.order: list[tuple[Head, Sequence[str]]] = []  # each name where it came first
        self.absent: dict[Head, frozenset[str]] = {}  # of gradients: the parameters that were looked at and have none
        self._places: dict[Head, int] = {}
        self._moved: dict[Head, dict[str, int]] = {}  # of names that came again, or later than the others of their row

    def add(self, head: Head, values: Values, *, at: int) -> None:
        """Take the figures of one group at one moment in, and `left` of the call before them; `values` is kept."""
        known = self.rows.get(head)
        if known is None:
            self.rows[head], self._places[head] = values, at
            self.order.append((head, tuple(values)))
            return
        new = tuple(name for name in values if name not in known)
        self._moved.setdefault(head, {}).update(dict.fromkeys(values, at))
        known |= values
        if new:
            self.order.append((head, new))

    def place(self, head: Head, name: str) -> int:
        """`left` of the call before a figure, -1 where there is no such figure."""
        if name not in self.rows.get(head, ()):
            return NOWHERE
        moved = self._moved.get(head)
        return self._places[head] if moved is None else moved.get(name, self._places[head])

    def places(self, *, step: int, moment: str) -> Iterator[int]:
        """The same of all figures of one moment of a step."""
        for head, values in self.rows.items():
            if head[0] == step and head[2] == moment:
                yield from (self.place(head, name) for name in values)


def _is_in(key: object, rows: Mapping[Head, Collection[str]]) -> bool:
    if not isinstance(key, tuple):
        return False
    step, microbatch, moment, group, name = cast("Key", key)
    return name in rows.get((step, microbatch, moment, group), ())


class FigureKeys(Set[Key]):
    """A set of keys."""

    def __init__(self) -> None:
        self._rows: dict[Head, set[str]] = {}

    def add(self, key: Key) -> None:
        """Add one key."""
        self.add_row(key[:4], (key[4],))

    def add_row(self, head: Head, names: Collection[str]) -> None:
        """Add the keys of these names of a row."""
        known = self._rows.get(head)
        if known is not None:
            known.update(names)
        elif names:
            self._rows[head] = set(names)

    def remove(self, key: Key) -> None:
        """Take out a key that is there."""
        row = self._rows[key[:4]]
        row.remove(key[4])
        if not row:
            del self._rows[key[:4]]

    def remove_group(self, group: str) -> None:
        """Take out all keys of a group."""
        for head in [head for head in self._rows if head[3] == group]:
            del self._rows[head]

    @property
    def heads(self) -> Collection[Head]:
        """The rows that have a key."""
        return self._rows.keys()

    def __contains__(self, key: object) -> bool:
        return _is_in(key, self._rows)

    def __iter__(self) -> Iterator[Key]:
        return ((*head, name) for head, row in self._rows.items() for name in row)

    def __len__(self) -> int:
        return sum(map(len, self._rows.values()))

    def __bool__(self) -> bool:
        return bool(self._rows)


class Differing(Mapping[Key, DigestDifference]):
    """The figures that differ, in the order of the baseline; one is made a record when it is asked for."""

    def __init__(self, places: tuple[FigureRows, FigureRows]) -> None:
        self._places = places
        self._rows: dict[Head, dict[str, tuple[str, str]]] = {}
        self._order: list[tuple[Head, Sequence[str]]] = []
        self._single: dict[Key, DigestDifference] = {}  # that stand where no figure of their key does

    def add_row(self, head: Head, values: dict[str, tuple[str, str]]) -> None:
        """Append what both sides recorded, by name; none of the names is there already."""
        if values:
            self._order.append((head, tuple(values)))
            self._rows.setdefault(head, {}).update(values)

    def add(self, found: DigestDifference) -> None:
        """Append a figure that stands elsewhere than the figures of its row."""
        self._single[found[:5]] = found
        self.add_row(found[:4], {found.name: (found.baseline, found.candidate)})

    def remove(self, key: Key) -> None:
        """Take out a figure that is there."""
        row = self._rows[key[:4]]
        del row[key[4]]
        self._single.pop(key, None)
        if not row:
            del self._rows[key[:4]]

    @property
    def heads(self) -> Collection[Head]:
        """The rows that have a figure."""
        return self._rows.keys()

    def names(self, head: Head) -> Set[str]:
        """The names of one row."""
        return self._rows[head].keys()

    def of_groups(self, groups: Collection[str]) -> list[Key]:
        """The keys of these groups, in order."""
        return [key for head in self._order if head[0][3] in groups for key in self._keys(*head)]

    def of_step(self, step: int | None) -> list[DigestDifference]:
        """The figures of a step, in order."""
        return [self[key] for head in self._order if head[0][0] == step for key in self._keys(*head)]

    def _keys(self, head: Head, names: Sequence[str]) -> Iterator[Key]:
        row = self._rows.get(head, ())
        return ((*head, name) for name in names if name in row)

    def __getitem__(self, key: Key) -> DigestDifference:
        single = self._single.get(key)
        if single is not None:
            return single
        head, name = key[:4], key[4]
        values = self._rows[head][name]
        return DigestDifference(*key, *values, *(side.place(head, name) for side in self._places))

    def __contains__(self, key: object) -> bool:
        return _is_in(key, self._rows)

    def __iter__(self) -> Iterator[Key]:
        return (key for head in self._order for key in self._keys(*head))

    def __len__(self) -> int:
        return sum(map(len, self._rows.values()))

    def __bool__(self) -> bool:
        return bool(self._rows)
