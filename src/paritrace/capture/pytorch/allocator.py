"""Watches an accelerator's allocator: when it can give no more, what was asked for and who holds the rest (RS-12).

Nothing is done before that moment: no hook on the path of an allocation, no history of allocations.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import torch

from paritrace.evidence.allocator import (
    MOST_BLOCKS,
    Block,
    MemoryScope,
    OutOfAcceleratorMemory,
    Owner,
    held_bytes,
    live_blocks,
)
from paritrace.evidence.calls import OriginKind
from paritrace.evidence.gaps import Gap, ResourceGap

Failure = Callable[[int, int, int, int], None]
"""Called with device, bytes asked for, bytes of the device in all, bytes that are free on it."""
State = tuple[OriginKind, str, torch.Tensor]

_SCOPES = {
    OriginKind.PARAMETER: MemoryScope.PARAMETERS,
    OriginKind.GRADIENT: MemoryScope.GRADIENTS,
    OriginKind.OPTIMIZER_STATE: MemoryScope.OPTIMIZER,
}
_IN_USE = "active_allocated"  # how a snapshot of the allocator calls blocks that tensors hold


class Allocator(Protocol):
    """What is asked of an accelerator's allocator; tests pass a scripted one."""

    def attach(self, failure: Failure) -> None:
        """Have this called when an allocation fails for good, before the error is raised; until the process ends."""
        ...

    def statistics(self, device: int) -> Mapping[str, int]:
        """Figures by the names of `torch.cuda.memory_stats`."""
        ...

    def blocks(self, device: int) -> Iterable[Block]:
        """The blocks that are in use."""
        ...


class CudaAllocator:
    """The caching allocator of CUDA and ROCm builds."""

    def attach(self, failure: Failure) -> None:
        torch._C._cuda_attach_out_of_memory_observer(failure)  # type: ignore[attr-defined]

    def statistics(self, device: int) -> Mapping[str, int]:
        return torch.cuda.memory_stats(device)

    def blocks(self, device: int) -> Iterator[Block]:
        for segment in torch.cuda.memory_snapshot():
            if segment["device"] == device:
                address = segment["address"]
                for block in segment["blocks"]:
                    if block["state"] == _IN_USE:
                        yield address, block["size"]
                    address += block["size"]


def allocator_here() -> CudaAllocator | Gap[ResourceGap]:
    """The allocator of this process's accelerator, or why there is none to watch."""
    if not torch.cuda.is_available():
        return Gap(ResourceGap.NO_ACCELERATOR)
    if not hasattr(torch._C, "_cuda_attach_out_of_memory_observer"):
        return Gap(ResourceGap.NO_COUNTER, f"torch {torch.__version__} tells nobody of failed allocations")
    return CudaAllocator()


class Where(NamedTuple):
    """Where the workload is: its step, and the innermost module being executed."""

    step: int
    module: str


class AllocatorObserver:
    """Makes a record of a failed allocation. `states`: the named state of the workload by then."""

    def __init__(
        self,
        allocator: Allocator,
        *,
        where: Callable[[], Where],
        states: Callable[[], Iterable[State]],
        record: Callable[[OutOfAcceleratorMemory], None],
    ) -> None:
        self._allocator = allocator
        self._where = where
        self._states = states
        self._record = record

    def failed(self, device: int, requested: int, total: int, free: int) -> None:
        """Record it; what an allocator calls, on whichever thread asked for memory."""
        statistics = self._allocator.statistics(device)
        blocks = live_blocks(self._allocator.blocks(device), self._owners())
        where = self._where()
        self._record(
            OutOfAcceleratorMemory(
                step=where.step,
                module=where.module,
                device=f"cuda:{device}",
                requested_bytes=requested,
                free_bytes=free,
                total_bytes=total,
                reserved_bytes=_figure(statistics, "reserved_bytes.all.current"),
                allocated_bytes=_figure(statistics, "allocated_bytes.all.current"),
                inactive_bytes=_figure(statistics, "inactive_split_bytes.all.current"),
                held_bytes=held_bytes(blocks),
                live_blocks=len(blocks),
                largest=blocks[:MOST_BLOCKS],
            )
        )

    def _owners(self) -> dict[int, Owner]:
        """Who holds which address: results of calls first, so that named state outranks them."""
        owners: dict[int, Owner] = {}
        for tensor, node in _tensors_with_a_graph():
            owners[_address(tensor)] = (MemoryScope.ACTIVATIONS, node)
        for kind, name, tensor in self._states():
            owners[_address(tensor)] = (_SCOPES.get(kind, MemoryScope.OTHER), name)
        owners.pop(0, None)
        return owners


def _tensors_with_a_graph() -> Iterator[tuple[torch.Tensor, str]]:
    """The results of differentiable calls that are alive, each with the name of its node."""
    for held in gc.get_objects():
        if issubclass(type(held), torch.Tensor):
            node = _node(held)
            if node is not None:
                yield held, type(node).__name__


def _node(tensor: torch.Tensor) -> object | None:
    """The node that made a tensor. A view whose base was written in place has one that cannot be shown."""
    try:
        return tensor.grad_fn
    except RuntimeError:
        return None


def _address(tensor: torch.Tensor) -> int:
    """Where the storage of a tensor begins, as the allocator counts; 0 for one without."""
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):  # wrappers, fakes and sparse layouts have no storage of their own
        return 0


def _figure(statistics: Mapping[str, Any], name: str) -> int | Gap[ResourceGap]:
    found = statistics.get(name)
    return found if isinstance(found, int) else Gap(ResourceGap.NO_COUNTER, name)
