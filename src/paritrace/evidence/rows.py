"""Rows of the journal for tokens: which token each row of a tensor is, and what the row holds (CP-27).

A token is addressed by its sample and its position in that sample, so that rows of runs with other batch sizes, other
orders, packing or padding can be told apart and put side by side. Arrays are little-endian and stand in base64.
"""

from msgspec import Struct

TOKENS = "input_ids"  # the observation under which declared token ids are kept: their fingerprints alone (P7)
POSITIONS = "position_ids"


class RowAddresses(Struct, array_like=True, frozen=True, gc=False, tag="a", forbid_unknown_fields=True):
    """Which token each kept row is: `samples[index[i]]`, `positions[i]`; both arrays are int32 and equally long."""

    id: int
    samples: tuple[str, ...]
    index: bytes
    positions: bytes


class TokenRows(Struct, array_like=True, frozen=True, gc=False, tag="r", forbid_unknown_fields=True):
    """One output, row by row, in the order of its addresses.

    `call` is the module call that gave it, -1 for a tensor that the workload named. `kind` is the whole tensor's; -1:
    declared numbers, int64. `bits`: xxh3-64 of each row's bytes (uint64). `norms`: L2 norm over the row (float64),
    empty where the dtype holds no numbers. `samples`: for each row its elements at `row_sample_indices(features)`, in
    the tensor's own dtype; empty for token ids. `tops` (int64) and `margins` (float64): of outputs that a choice is
    made from, the place of the row's largest element and by how much it exceeds the second; else empty. `rows`: the
    row's number in the tensor (int32).
    """

    addresses: int
    context: int
    call: int
    name: int
    kind: int
    features: int
    rows: bytes
    bits: bytes
    norms: bytes
    samples: bytes
    tops: bytes = b""
    margins: bytes = b""
    semantics: str | None = None
