"""How a kind of evidence registers: it translates its records and says which fields of a pair agree (one engine)."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

from paritrace.correspondence.engine import correspond
from paritrace.correspondence.records import Records
from paritrace.correspondence.vocabulary import Unpaired

Source = TypeVar("Source", contravariant=True)  # what a kind reads: a run, a file, a table


class Field(NamedTuple):
    """One compared field of a pair; `agrees` is None where it is not comparable, and `reason` says why."""

    name: str
    agrees: bool | None
    reason: str = ""


class EvidenceKind(Protocol[Source]):
    """What a kind of evidence brings; the engine brings the pairing, the sections bring the counts."""

    @property
    def name(self) -> str:
        """What the section is called."""
        ...

    def records(self, source: Source) -> Records | None:
        """The neutral records of one side, None when it holds none of this kind."""
        ...

    def fields(self, a: Source, i: int, b: Source, j: int) -> Sequence[Field]:
        """The fields of record `i` of a against record `j` of b."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """What both sides hold of one kind: pairs, agreement, and what has no partner, by reason."""

    kind: str
    records_a: int
    records_b: int
    pairs: tuple[tuple[int, int], ...]
    equal: int
    different: tuple[tuple[int, int, tuple[str, ...]], ...]  # pair and the names of its differing fields
    not_comparable: int  # fields, not pairs
    unpaired_a: dict[Unpaired, int]
    unpaired_b: dict[Unpaired, int]


def sections(kinds: Iterable[EvidenceKind[Source]], a: Source, b: Source) -> tuple[Section, ...]:
    """Compare everything that both sides hold, one section per kind; a kind of one side only has no section."""
    found = (_section(kind, a, b) for kind in kinds)
    return tuple(section for section in found if section is not None)


def _section(kind: EvidenceKind[Source], a: Source, b: Source) -> Section | None:
    ours, theirs = kind.records(a), kind.records(b)
    if ours is None or theirs is None:
        return None
    pairing = correspond(ours, theirs).pairing
    pairs = tuple((i, j) for i, j in enumerate(pairing.partner_a) if j >= 0)
    judged = [(i, j, kind.fields(a, i, b, j)) for i, j in pairs]
    different = tuple(
        (i, j, names) for i, j, fields in judged if (names := tuple(f.name for f in fields if f.agrees is False))
    )
    return Section(
        kind=kind.name,
        records_a=len(ours),
        records_b=len(theirs),
        pairs=pairs,
        equal=sum(all(field.agrees for field in fields) for _, _, fields in judged),
        different=different,
        not_comparable=sum(field.agrees is None for _, _, fields in judged for field in fields),
        unpaired_a=dict(Counter(pairing.reason_a(i) for i, j in enumerate(pairing.partner_a) if j < 0)),
        unpaired_b=dict(Counter(pairing.reason_b(j) for j, i in enumerate(pairing.partner_b) if i < 0)),
    )
