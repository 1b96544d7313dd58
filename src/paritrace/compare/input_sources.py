"""Where the differing inputs of many pairs come from on both sides, found at once (CP-8, CP-17, CP-20)."""

from array import array
from dataclasses import dataclass

import numpy as np

from paritrace.compare.agreement import Sides
from paritrace.compare.flows import FromOrigin, named
from paritrace.compare.lookups import Numbers, compact, pairs_of
from paritrace.compare.slot_pairs import MAX_SLOTS
from paritrace.compare.slot_words import SlotWords
from paritrace.compare.translate import Side
from paritrace.compare.verdicts import Verdicts
from paritrace.evidence.call_batches import FROM_ORIGIN

OTHERWISE = -1
"""In `makers`: neither a differing output of one pair nor one name is read: to be looked at singly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSources:
    """One number for each differing input of the calls asked for, from `first[i]` on, in the verdict's order.

    `makers` >= 0: the call of the baseline of which both sides read the same output, which differs. Below `OTHERWISE`:
    both sides read what has the name `origins[-2 - maker]`.
    """

    first: "array[int]"  # by call; -1 without a differing input
    calls: Numbers  # whose input it is
    places: "array[int]"
    makers: "array[int]"
    origins: list[FromOrigin]


def input_sources(sides: Sides, verdicts: Verdicts) -> InputSources:
    """Find the sources of all differing inputs."""
    counts = verdicts.told([len(kind.inputs) for kind in verdicts.kinds], np.int64)
    first = np.where(counts > 0, np.cumsum(counts) - counts, -1)
    calls = np.repeat(np.arange(len(counts)), counts)
    inputs = [place for kind in verdicts.kinds for place in kind.inputs]
    starts = np.cumsum([0, *(len(kind.inputs) for kind in verdicts.kinds)])[np.maximum(verdicts.codes, 1) - 1]
    within = np.arange(len(calls)) - np.repeat(np.cumsum(counts) - counts, counts)
    places = np.array(inputs, np.int64)[starts[calls] + within]
    found = _makers(sides, calls, places, verdicts)
    return InputSources(
        first=compact(first, "q"),
        calls=calls,
        places=compact(places, "q"),
        makers=compact(found.makers, "q"),
        origins=found.names,
    )


@dataclass(frozen=True, slots=True)
class _Found:
    makers: Numbers
    names: list[FromOrigin]


def _makers(sides: Sides, calls: Numbers, places: Numbers, verdicts: Verdicts) -> _Found:
    ours, theirs = sides.baseline, sides.candidate
    partners = np.asarray(sides.pairing.partner_a)
    slots = ours.calls.column("first")[calls] + places
    others = theirs.calls.column("first")[partners[calls]] + places
    same = _same_slots(sides, calls, partners[calls], slots=slots, others=others)
    calls, slots, others = calls[same], slots[same], others[same]
    output, other_output = ours.calls.column("output")[slots], theirs.calls.column("output")[others]
    made = (output != FROM_ORIGIN) & (other_output != FROM_ORIGIN)
    left = np.where(made, ours.index_of.places(ours.calls.column("source")[slots]), OTHERWISE)
    right = np.where(made, theirs.index_of.places(theirs.calls.column("source")[others]), OTHERWISE)
    one = (left >= 0) & (right >= 0) & (partners[left] == right) & (output == other_output)
    one &= _differ(verdicts, left, output)
    both = (output == FROM_ORIGIN) & (other_output == FROM_ORIGIN)
    names, origins = _names(ours, theirs, slots, others, both=both)
    makers = np.full(len(same), OTHERWISE)
    makers[np.flatnonzero(same)] = np.where(one, left, names)
    return _Found(makers, origins)


def _same_slots(sides: Sides, calls: Numbers, partners: Numbers, *, slots: Numbers, others: Numbers) -> Numbers:
    """Whether the other call's slot at the same place bears the same name, and no other of its inputs does."""
    ours, theirs = sides.baseline.words, sides.candidate.words
    inside = (calls >= 0) & (others < theirs.middle[partners])
    same: Numbers = inside.copy()
    same[inside] = ours.names[slots[inside]] == theirs.names[others[inside]]
    return same & ~_with_namesakes(theirs)[partners]


def _with_namesakes(words: SlotWords) -> Numbers:
    """By call: whether two of its inputs bear one name."""
    owners = np.repeat(np.arange(len(words.middle)), np.diff(words.first))
    inputs = np.arange(len(owners)) < words.middle[owners]
    num_names = int(words.names.max(initial=0)) + 1
    named = np.sort(owners[inputs] * num_names + words.names[inputs])
    found = np.zeros(len(words.middle), np.bool_)
    found[named[1:][named[1:] == named[:-1]] // num_names] = True
    return found


def _differ(verdicts: Verdicts, makers: Numbers, outputs: Numbers) -> Numbers:
    """Whether that output of that call differs, where its place is below the width of a word."""
    words = verdicts.told(
        [sum(1 << p for p in set(kind.outputs) if p < MAX_SLOTS) for kind in verdicts.kinds], np.uint64
    )
    shift = np.clip(outputs, 0, MAX_SLOTS).astype(np.uint64)
    bit = (words[np.maximum(makers, 0)] >> shift) & np.uint64(1)
    found: Numbers = (makers >= 0) & (outputs >= 0) & (outputs < MAX_SLOTS) & (bit != 0)
    return found


def _names(
    ours: Side, theirs: Side, slots: Numbers, others: Numbers, *, both: Numbers
) -> tuple[Numbers, list[FromOrigin]]:
    """`-2 - n` where both sides read from the nth name; `OTHERWISE` anywhere else."""
    places = np.flatnonzero(both)
    left, right = ours.calls.column("source")[slots[places]], theirs.calls.column("source")[others[places]]
    pairs, where = pairs_of(left, right)
    names = [(named(ours, x), named(theirs, y)) for x, y in pairs]
    codes = [-2 - n if x == y else OTHERWISE for n, (x, y) in enumerate(names)]
    found = np.full(len(slots), OTHERWISE)
    found[places] = np.array(codes, dtype=np.int64)[where]
    return found, [x for x, _ in names]
