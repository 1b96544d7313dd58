"""What an accelerator's allocator held when it could give no more: the record, and the rule that sums it (RS-12)."""

from collections.abc import Iterable, Mapping
from enum import StrEnum

from msgspec import Struct

from paritrace.evidence.definition import Definition
from paritrace.evidence.gaps import Gap, ResourceGap

MOST_BLOCKS = 20
"""The largest live blocks that are kept one by one; the rest is in the sums."""


class MemoryScope(StrEnum):
    """What a block of accelerator memory is held for, as far as an owner was found."""

    PARAMETERS = "parameters"
    GRADIENTS = "gradients"
    OPTIMIZER = "optimizer"
    ACTIVATIONS = "activations"  # results of calls that take part in a graph of gradients
    OTHER = "other"  # buffers, inputs, workspaces, and what the graph of gradients alone holds on to


class LiveBlock(Struct, frozen=True, forbid_unknown_fields=True):
    """One block in use. `name`: of the parameter or state, or of the function that made it; empty where not known."""

    num_bytes: int
    scope: MemoryScope
    name: str


class OutOfAcceleratorMemory(Definition, frozen=True, tag="out_of_accelerator_memory"):
    """An allocation failed after the allocator had given back what it could.

    `module` is the innermost module being executed, empty outside any. `free_bytes`: of the device as its driver says,
    all processes together. `reserved_bytes`: what the allocator holds, `allocated_bytes`: what of it tensors hold,
    `inactive_bytes`: what of it is left between blocks in use, where it cannot be given back. `held_bytes`: the bytes
    of live blocks by scope; `live_blocks`: how many there were, of which `largest` are the largest.
    """

    step: int
    module: str
    device: str
    requested_bytes: int
    free_bytes: int
    total_bytes: int
    reserved_bytes: int | Gap[ResourceGap]
    allocated_bytes: int | Gap[ResourceGap]
    inactive_bytes: int | Gap[ResourceGap]
    held_bytes: dict[MemoryScope, int]
    live_blocks: int
    largest: tuple[LiveBlock, ...]


Block = tuple[int, int]
"""Address and bytes of a block in use."""
Owner = tuple[MemoryScope, str]


def live_blocks(blocks: Iterable[Block], owners: Mapping[int, Owner]) -> tuple[LiveBlock, ...]:
    """Blocks with their owners by address, the largest first."""
    unowned: Owner = (MemoryScope.OTHER, "")
    found = [LiveBlock(size, *owners.get(address, unowned)) for address, size in blocks]
    return tuple(sorted(found, key=lambda block: (-block.num_bytes, block.scope, block.name)))


def held_bytes(blocks: Iterable[LiveBlock]) -> dict[MemoryScope, int]:
    """Bytes by scope; every scope is there."""
    sums = dict.fromkeys(MemoryScope, 0)
    for block in blocks:
        sums[block.scope] += block.num_bytes
    return sums


def told(record: OutOfAcceleratorMemory) -> str:
    """One line for a person."""
    where = f" in {record.module}" if record.module else ""
    held = ", ".join(f"{scope} {_size(size)}" for scope, size in record.held_bytes.items() if size)
    return (
        f"out of accelerator memory at step {record.step}{where}: {_size(record.requested_bytes)} asked for, "
        f"{_size(record.free_bytes)} of {_size(record.total_bytes)} free on {record.device}; held: {held or 'nothing'}"
    )


def _size(num_bytes: int) -> str:
    return f"{num_bytes / 2**20:,.1f} MiB"
