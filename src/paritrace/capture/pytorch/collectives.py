"""Facts of a collective or point-to-point operator that its schema tells once (CA-31)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

NAMESPACES = frozenset({"c10d", "_c10d_functional", "c10d_functional", "_dtensor"})
# One word for what several operators do. What is not listed goes by its own name.
_OPERATIONS = {
    "allreduce": "all_reduce",
    "allreduce_coalesced": "all_reduce",
    "all_reduce_coalesced": "all_reduce",
    "allgather": "all_gather",
    "allgather_base": "all_gather",
    "allgather_coalesced": "all_gather",
    "allgather_into_tensor_coalesced": "all_gather",
    "all_gather_into_tensor": "all_gather",
    "all_gather_into_tensor_out": "all_gather",
    "all_gather_into_tensor_coalesced": "all_gather",
    "reduce_scatter_base": "reduce_scatter",
    "reduce_scatter_tensor": "reduce_scatter",
    "reduce_scatter_tensor_out": "reduce_scatter",
    "reduce_scatter_tensor_coalesced": "reduce_scatter",
    "alltoall": "all_to_all",
    "alltoall_base": "all_to_all",
    "all_to_all_single": "all_to_all",
    "shard_dim_alltoall": "all_to_all",
    "isend": "send",
    "irecv": "recv",
    "recv_any_source": "recv",
    "batch_p2p_ops": "send_recv",
    "monitored_barrier": "barrier",
}
# Operators of c10d declare no writes. Those which take `tensors` and leave them as they are:
_READ_ONLY = frozenset({"send", "barrier"})
_WITHOUT_READING = frozenset({"recv", "recv_any_source"})  # `tensors` are written without being read
_OUTPUTS = ("output", "outputs", "output_tensor", "output_tensors", "output_lists")
_PEERS = {"send", "recv", "send_recv"}
BARRIER = "barrier"


@dataclass(frozen=True, slots=True)
class CollectiveFacts:
    """Positions of the arguments of one operator; -1 where it has no such argument.

    `written` and `unread` (written without being read) are positions of arguments that its schema does not declare as
    written. `root` and `peer` are ranks within the group. `blocks`: it returns no work and has completed on return.
    """

    operation: str
    group: int
    reduce: int
    root: int
    peer: int
    asynchronous: int
    written: frozenset[int]
    unread: frozenset[int]
    blocks: bool

    def hidden(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments without those that belong to this process, for the scalars of the call."""
        return tuple(None if index in (self.group, self.reduce) else value for index, value in enumerate(args))

    def reduction(self, args: tuple[Any, ...]) -> str:
        """The reduction in words: `sum`, `avg`, `max` …; empty where nothing is reduced."""
        value = args[self.reduce] if 0 <= self.reduce < len(args) else None
        if value is None:
            return ""
        return value.lower() if isinstance(value, str) else reduction_name(int(value.op()))

    def is_asynchronous(self, args: tuple[Any, ...]) -> bool:
        """Whether the caller may go on before the operation has ended; the schema's own default is that it may."""
        if self.asynchronous < 0:
            return not self.blocks
        return bool(args[self.asynchronous]) if self.asynchronous < len(args) else True


def facts_of(func: Any) -> CollectiveFacts | None:
    """The facts of an operator overload; None for everything that does not speak to other ranks."""
    if not isinstance(func, torch._ops.OpOverload) or func.namespace not in NAMESPACES:
        return None
    schema = func._schema
    places = {argument.name: index for index, argument in enumerate(schema.arguments)}
    group = places.get("process_group", places.get("group_name", -1))
    if group < 0:
        return None
    name = schema.name.partition("::")[2].strip("_")
    operation = _OPERATIONS.get(name, name)
    written, unread = _writes(name, places)
    end = places.get("src", places.get("dst", -1))
    return CollectiveFacts(
        operation=operation,
        group=group,
        reduce=places.get("reduce_op", -1),
        root=-1 if operation in _PEERS else places.get("root_rank", end),
        peer=end if operation in _PEERS else -1,
        asynchronous=places.get("async_op", -1),
        written=written,
        unread=unread,
        blocks=not schema.returns,
    )


def _writes(name: str, places: dict[str, int]) -> tuple[frozenset[int], frozenset[int]]:
    unread = {places[output] for output in _OUTPUTS if output in places}
    inplace = {places["tensors"]} if "tensors" in places and name not in _READ_ONLY and not unread else set[int]()
    if name in _WITHOUT_READING:
        unread |= inplace
    return frozenset(unread | inplace), frozenset(unread)


def reduction_name(number: int) -> str:
    kind: Callable[[int], Any] = vars(torch._C)["_distributed_c10d"].ReduceOp.RedOpType
    return str(kind(number).name).lower()
