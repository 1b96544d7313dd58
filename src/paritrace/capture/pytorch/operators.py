"""Facts about an operator that its schema and tags tell once: what it writes, what it leaves uninitialised."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from paritrace.capture.pytorch.collectives import CollectiveFacts, facts_of

OVERWRITES = frozenset(
    (
        "copy_",
        "fill_",
        "zero_",
        "normal_",
        "uniform_",
        "random_",
        "bernoulli_",
        "exponential_",
        "geometric_",
        "log_normal_",
        "cauchy_",
        "set_",
    )
)
# Written in part: what they leave out of a fresh buffer is uninitialised after them as before (CA-35).
_PARTLY = frozenset(
    (
        "index_put_",
        "_index_put_impl_",
        "index_copy_",
        "index_fill_",
        "index_add_",
        "index_reduce_",
        "scatter_",
        "scatter_add_",
        "scatter_reduce_",
        "masked_fill_",
        "masked_scatter_",
        "put_",
        "fill_diagonal_",
    )
)
ALLOCATES = ("empty", "new_empty", "_empty_affine_quantized")
REGION = "inductor.compiled_region"
WITHOUT_TENSORS = frozenset({"profiler"})  # namespaces of bookkeeping that reaches the dispatcher
# Running statistics are written in training, which these schemas do not declare.
_UNDECLARED_WRITES: dict[str, set[int | str]] = {
    "native_batch_norm": {3, 4, "running_mean", "running_var"},
    "cudnn_batch_norm": {3, 4, "running_mean", "running_var"},
    "miopen_batch_norm": {3, 4, "running_mean", "running_var"},
}
# Results that lie in an argument and are written, which these schemas do not declare either.
_WRITTEN_RESULTS = {"fsdp::all_gather_copy_in": frozenset({0})}
_SHARDING = "fsdp"  # namespace of what fills and empties the parameters of a sharded module
_WAITS = "wait_tensor"


@dataclass(frozen=True, slots=True)
class Operator:
    """What the capture needs to know of one operator overload.

    `written` and `overwritten` hold positions (int) and names (str) of arguments; `overwritten` ones are written
    without being read. `base` is the name without underscores, for checking a backward link. `reads_storage`: an
    argument is a storage, no tensor, whose bytes come from outside what is observed (a file that `torch.load` reads).
    `is_view`: every output aliases an input that is not written, so that readers of it read what made the input.
    `partly`: which elements it writes depends on values, and the rest stays as it was. `waits`: it returns when the
    collective that makes its argument has completed. `shards`: a sharded module's parameters come or go.
    """

    name: str
    base: str
    written: frozenset[int | str]
    overwritten: frozenset[int | str]
    inplace: bool
    uninitialised: bool
    seeded: bool
    function_id: int
    reads_storage: bool = False
    is_view: bool = False
    partly: bool = False
    collective: CollectiveFacts | None = None
    waits: bool = False
    shards: bool = False
    written_results: frozenset[int] = frozenset()


def region(function_id: int) -> Operator:
    """A compiled region, seen from outside."""
    return Operator(REGION, "", frozenset(), frozenset(), False, False, False, function_id)


def describe(func: Any, function_id: int) -> Operator:
    """Read an `OpOverload`'s schema; a higher-order operator has none and writes nothing that is known."""
    if not isinstance(func, torch._ops.OpOverload):
        return Operator(str(func), "", frozenset(), frozenset(), False, False, False, function_id)
    schema = func._schema
    name = schema.name.partition("::")[2]
    written: set[int | str] = set()
    outs: set[int | str] = set()
    for index, argument in enumerate(schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            keys: set[int | str] = {argument.name} if argument.kwarg_only else {index, argument.name}
            written |= keys
            if argument.is_out:
                outs |= keys
    if name in _UNDECLARED_WRITES:
        written |= _UNDECLARED_WRITES[name]
    collective = facts_of(func)
    if collective is not None:
        written |= collective.written
        outs |= collective.unread
    overwrites: set[int | str] = {0, "self"} if name in OVERWRITES or _is_random_fill(name) else set[int | str]()
    return Operator(
        name=str(func),
        base=name.replace("_", "").lower(),
        written=frozenset(written),
        overwritten=frozenset((outs | overwrites) & written),
        inplace=bool(written) and not outs and name not in _UNDECLARED_WRITES,
        uninitialised=name.startswith(ALLOCATES),
        seeded=torch.Tag.nondeterministic_seeded in func.tags,
        function_id=function_id,
        partly=name in _PARTLY,
        reads_storage=any(str(argument.type) == "Storage" for argument in schema.arguments),
        is_view=name == _WAITS
        or (bool(schema.returns) and all(_is_alias(returned.alias_info) for returned in schema.returns)),
        collective=collective,
        waits=name == _WAITS,
        shards=func.namespace == _SHARDING,
        written_results=_WRITTEN_RESULTS.get(schema.name, frozenset()),
    )


def _is_alias(alias_info: Any) -> bool:
    return alias_info is not None and not alias_info.is_write


def _is_random_fill(name: str) -> bool:
    return name in ("bernoulli_", "_foreach_zero_", "_foreach_copy_")
