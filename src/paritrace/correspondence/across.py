"""Pairing records whose counterpart stands in another stream: only by evidence that it is the same (CP-1, CP-3).

A collective that one side runs over another group stands in another stream there. Order says nothing across streams, so
that a name, equal inputs or recorded flow must say it, and each must occur once on each side.
"""

from collections.abc import Callable, Hashable, Iterable

from paritrace.correspondence.dataflow import sources
from paritrace.correspondence.pairing import Pairing
from paritrace.correspondence.records import Records
from paritrace.correspondence.sequences import Marks, matches
from paritrace.correspondence.vocabulary import Basis

MarkOf = Callable[[int], Hashable | None]


def pair_across(pairing: Pairing) -> None:
    """Pair what own streams left unpaired within the wider stream that a record may name."""
    a, b = pairing.a, pairing.b
    rules: tuple[tuple[Basis, MarkOf, MarkOf], ...] = (
        (Basis.PARAMETER_NAME, lambda i: a.labels[i] or None, lambda j: b.labels[j] or None),
        (Basis.INPUT_ANCHOR, a.anchor_inputs, b.anchor_inputs),
        (Basis.DATAFLOW, lambda i: sources(pairing, i, side=0), lambda j: sources(pairing, j, side=1)),
    )
    for basis, mark_a, mark_b in rules:
        free_a, free_b = _free(a, pairing.unpaired(0)), _free(b, pairing.unpaired(1))
        if not free_a or not free_b:
            return
        for i, j in matches(_marks(a, free_a, mark_a), _marks(b, free_b, mark_b)):
            pairing.pair(i, j, basis=basis)


def _free(side: Records, unpaired: Iterable[int]) -> list[int]:
    return [i for i in unpaired if side.wider(i) is not None]


def _marks(side: Records, items: Iterable[int], mark_of: MarkOf) -> Marks:
    return [((side.wider(i), side.layers[i], side.keys[i], mark), i) for i in items if (mark := mark_of(i)) is not None]
