"""Which paired collectives compute something else, each kind told at its first appearance only (CP-8)."""

from collections.abc import Hashable

from paritrace.compare.agreement import Sides
from paritrace.compare.blames import Blame
from paritrace.compare.collective_fields import field_differences, told_fields
from paritrace.compare.result import Group


class UnlikeCollectives:
    """Blames pairs of collectives whose fields differ: a fact of its own, whatever flows in."""

    def __init__(self, sides: Sides) -> None:
        self._sides = sides
        self._first: dict[Hashable, int] = {}

    def blame(self, i: int) -> Blame:
        """The first of a kind originates; the same difference at later steps is its consequence."""
        ours, theirs = self._sides.baseline, self._sides.candidate
        facts = ours.collectives[i]
        fields = tuple(field_differences((facts, theirs.collectives[self._sides.pairing.partner_a[i]])))
        held = facts.label if any(field.name == "parameters" for field in fields) else ""
        kind: Hashable = (facts.group, ours.records.keys[i], held, fields)
        if all(field.name == "ranks" for field in fields):
            kind = (facts.group, fields)
        first = self._first.setdefault(kind, i)
        if first != i:
            return Blame(Group.PROPAGATES, "as the first collective of its kind", ("call", first))
        return Blame(Group.ORIGINATES, told_fields(fields), ("call", i))
