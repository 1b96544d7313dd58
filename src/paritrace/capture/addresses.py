"""Which token each row of a batch is, from what a workload has at hand: a rule over plain arrays (CP-27)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, cast

import numpy as np
import numpy.typing as npt

MAX_CLEAR = 64  # characters of a sample's id that stands in the journal as itself; of a longer one its digest (P7)
NO_TOKEN = -1  # the position of padding
LARGEST = (1 << 31) - 1

Numbers = npt.NDArray[np.int64]


class UnclearError(Exception):
    """The declaration does not say which token each row is; the text says why."""


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """What `paritrace.rows` was given, tensors read: `ids` as nested lists of whole numbers and texts, or an array."""

    ids: object
    positions: Numbers | None = None
    attention_mask: Numbers | None = None
    position_ids: Numbers | None = None
    cu_seqlens: Numbers | None = None
    input_ids: Numbers | None = None


@dataclass(frozen=True)
class Addresses:
    """`samples[index]` and `positions` for each row, in the shape of the batch's token dims; -1 where no token is."""

    samples: tuple[str, ...]
    index: Numbers
    positions: Numbers

    @property
    def shape(self) -> tuple[int, ...]:
        return self.index.shape

    def __getitem__(self, key: Any) -> Addresses:
        return Addresses(self.samples, np.asarray(self.index[key]), np.asarray(self.positions[key]))


def addresses(given: Declaration) -> Addresses:
    """The address of each row.

    Positions are taken from the first of these that was given: `positions`, `cu_seqlens`, `attention_mask`,
    `position_ids`, the shape of `input_ids`. A model's own position ids are the last to be believed, since they may be
    what is wrong.

    Raises:
        UnclearError: the sizes do not fit, an id is neither a text nor a whole number, or nothing tells positions.
    """
    samples, index = _samples(given.ids)
    if given.positions is not None:
        found = _placed(index, given.positions)
    elif given.cu_seqlens is not None:
        found = _packed(index, given.cu_seqlens, _shape_of(given))
    elif given.attention_mask is not None:
        found = _masked(index, given.attention_mask)
    elif given.position_ids is not None:
        found = _by_position_ids(index, given.position_ids)
    elif given.input_ids is not None:
        found = _whole(index, given.input_ids)
    else:
        raise UnclearError("nothing says the positions: give positions, a mask, cu_seqlens, position_ids or input_ids")
    if found[1].size and int(found[1].max()) > LARGEST:
        raise UnclearError("a position is beyond 31 bits")
    return Addresses(samples, found[0], np.maximum(found[1], NO_TOKEN))


def sample_name(value: object) -> str:
    """How a sample's id is spelt: a number in decimals, a text of up to 64 characters as it is, else its digest."""
    whole: Any = value
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, str, np.integer)):
        raise UnclearError(f"a sample's id is a {type(whole).__name__}, neither a text nor a whole number")
    text = str(whole)
    if len(text) <= MAX_CLEAR:
        return text
    return f"sha256:{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def _samples(ids: object) -> tuple[tuple[str, ...], Numbers]:
    """The different samples, in the order they are met, and which of them each entry is."""
    shape, flat = _flat(ids)
    codes: dict[str, int] = {}
    index = [codes.setdefault(sample_name(value), len(codes)) for value in flat]
    return tuple(codes), np.array(index, dtype=np.int64).reshape(shape)


def _flat(ids: object) -> tuple[tuple[int, ...], list[object]]:
    if isinstance(ids, np.ndarray):
        array = cast("npt.NDArray[Any]", ids)
        return array.shape, array.reshape(-1).tolist()
    if isinstance(ids, str) or not isinstance(ids, Sequence):
        return (1,), [ids]
    outer = cast("Sequence[object]", ids)
    rows = [cast("Sequence[object]", row) for row in outer if isinstance(row, (list, tuple))]
    if not rows:
        return (len(outer),), list(outer)
    if len(rows) < len(outer) or len({len(row) for row in rows}) > 1:
        raise UnclearError("the ids are nested lists of unequal lengths")
    return (len(rows), len(rows[0])), [value for row in rows for value in row]


def _placed(index: Numbers, positions: Numbers) -> tuple[Numbers, Numbers]:
    if index.shape == positions.shape:
        return index, positions
    return _spread(index, positions.shape), positions


def _spread(index: Numbers, shape: tuple[int, ...]) -> Numbers:
    """One id for each sequence of a batch of shape (sequences, tokens)."""
    if len(shape) == 2 and index.shape == shape[:1]:
        return np.broadcast_to(index[:, None], shape)
    raise UnclearError(f"ids of shape {index.shape} do not go with rows of shape {shape}")


def _masked(index: Numbers, mask: Numbers) -> tuple[Numbers, Numbers]:
    """Padding on either side: the tokens of a sequence are counted from its first one on."""
    held = mask != 0
    return _spread(index, mask.shape), np.where(held, np.cumsum(held, axis=-1) - 1, NO_TOKEN)


def _packed(index: Numbers, bounds: Numbers, shape: tuple[int, ...] | None) -> tuple[Numbers, Numbers]:
    lengths = np.diff(bounds)
    if bounds.ndim != 1 or not bounds.size or bounds[0] != 0 or (lengths < 0).any():
        raise UnclearError("cu_seqlens is no rising list that begins with 0")
    total = int(bounds[-1])
    shape = (total,) if shape is None else shape
    size = int(np.prod(shape))
    if index.shape != lengths.shape or size < total:
        raise UnclearError(f"{index.size} ids, {lengths.size} sequences of {total} tokens, {size} rows")
    owners, places = np.zeros(size, dtype=np.int64), np.full(size, NO_TOKEN, dtype=np.int64)
    owners[:total] = np.repeat(index, lengths)
    places[:total] = np.arange(total) - np.repeat(bounds[:-1], lengths)
    return owners.reshape(shape), places.reshape(shape)


def _by_position_ids(index: Numbers, found: Numbers) -> tuple[Numbers, Numbers]:
    if found.ndim == 2 and index.shape == found.shape[:1]:
        return _spread(index, found.shape), found
    flat = found.reshape(-1)
    starts = np.flatnonzero(np.diff(flat, prepend=flat[:1]) != 1)
    if found.ndim > 2 or (found.ndim == 2 and found.shape[0] != 1) or starts.size != index.size:
        raise UnclearError(f"{index.size} ids, and position_ids of shape {found.shape} that begin {starts.size} times")
    bounds = np.append(starts, flat.size)
    return np.repeat(index, np.diff(bounds)).reshape(found.shape), found


def _whole(index: Numbers, tokens: Numbers) -> tuple[Numbers, Numbers]:
    places: Numbers = np.arange(tokens.shape[-1], dtype=np.int64)
    return _spread(index, tokens.shape), np.broadcast_to(places, tokens.shape)


def _shape_of(given: Declaration) -> tuple[int, ...] | None:
    """The shape of what else was given: a packed batch is often (1, tokens)."""
    known = given.input_ids if given.input_ids is not None else given.position_ids
    return None if known is None else known.shape
