"""Neutral records: what the engine may know of one side of a comparison, whatever kind of evidence it is.

The engine knows no tensors, files or frameworks. A kind of evidence translates its own records into these columns;
outputs have no place here, so that they cannot influence pairing (CP-4).
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Made(NamedTuple):
    """An input made by another record of the same side: its index and which of its outputs (CP-20)."""

    record: int
    output: int


Flow = Made | str | None
"""Where one input comes from: a record, something named (`parameter:fc.weight`), or nothing recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scopes:
    """The tree of module instances of one side; index 0 is the root, and a parent stands before its children."""

    parents: Sequence[int]
    names: Sequence[str]
    facts: Sequence[str]  # for example the class: decides only between scopes of one name


def no_flow(_index: int) -> tuple[Flow, ...]:
    """The flow of evidence that records none."""
    return ()


def no_names(_index: int) -> tuple[str, ...]:
    """The names of evidence that consumes nothing by name."""
    return ()


def no_wider(_index: int) -> Hashable | None:
    """The wider stream of evidence whose counterparts always stand in the same stream."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """One side's records in execution order, as columns of equal length.

    `keys` and `inputs` are equal on both sides where they mean the same. `anchor_inputs` gives the inputs of a record
    when they may serve as evidence of identity, None when they are degenerate or were not captured (CP-3). `wider`
    names the streams among which a record's counterpart may stand, None where that is its own. `declared` are records
    whose own name is alike on both sides only because somebody said so (CP-5).
    """

    streams: Sequence[Hashable]  # mesh coordinate, step, micro-batch, phase, thread role (CP-1)
    layers: Sequence[int]  # records of different layers (levels) never share a sequence
    scopes: Sequence[int]  # the scope a record stands in; an entry stands in the scope that it enters
    entries: Sequence[int]  # the record *is* the entry of its scope (a module call)
    keys: Sequence[Hashable]
    inputs: Sequence[Hashable]
    links: Sequence[int]  # index of the record this one follows from (backward, recompute), or -1
    replays: Sequence[int]  # a linked record that repeats its origin (recompute) instead of answering it (backward)
    labels: Sequence[str]  # a name that alone decides the pair (AccumulateGrad's parameter), or ""
    tree: Scopes
    anchor_inputs: Callable[[int], Hashable | None]
    names: Callable[[int], tuple[str, ...]] = no_names
    flow: Callable[[int], tuple[Flow, ...]] = no_flow
    wider: Callable[[int], Hashable | None] = no_wider
    declared: frozenset[int] = frozenset()
    anchored: Sequence[int] | None = None  # where `inputs` are what `anchor_inputs` gives; None: it must be asked
    named: Sequence[Hashable] | None = None  # equal on both sides where `names` gives the same; None: it must be asked

    def __len__(self) -> int:
        return len(self.keys)
