"""Writes one module call down as Python source of operators, which needs nothing but torch to run (CP-26, capsule)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import make_fx

from paritrace.capture.pytorch.collectives import reduction_name
from paritrace.capture.pytorch.flatten import tensors
from paritrace.capture.pytorch.replay_call import Forced, prepared
from paritrace.evidence.replays import Traced

_HEAD = re.compile(r"^def forward\(", re.MULTILINE)


@dataclass(frozen=True)
class Tracing:
    """`program` with the tensors that it takes, in order, and those that it holds."""

    program: Traced
    arguments: list[torch.Tensor]
    constants: dict[str, torch.Tensor]


def trace(forced: Forced) -> Tracing:
    """Follow the call once on the golden values. Branches that depend on values are decided as they were decided then.

    Raises:
        Exception: whatever torch's tracer raises for what it cannot follow, or RuntimeError for what holds no tensor.
    """
    with prepared(forced) as call:
        names, given = list(call.tensors), list(call.tensors.values())
        paths: list[str] = []

        def flat(*values: torch.Tensor) -> list[torch.Tensor]:
            found = dict(tensors(call(dict(zip(names, values, strict=True))), "out"))
            paths[:] = list(found)
            return list(found.values())

        graph = make_fx(flat, tracing_mode="real")(*given)
    graph.graph.eliminate_dead_code()
    graph.graph.set_codegen(torch.fx.graph.CodeGen())
    graph.recompile()
    return _written(graph, names=names, given=given, paths=paths)


def _written(graph: Any, *, names: list[str], given: list[torch.Tensor], paths: list[str]) -> Tracing:
    held = {str(node.target): _held(graph, str(node.target)) for node in graph.graph.nodes if node.op == "get_attr"}
    constants = {name: value for name, value in held.items() if isinstance(value, torch.Tensor)}
    others = {name: value for name, value in held.items() if not isinstance(value, torch.Tensor)}
    groups, reductions = _distributed(others)
    targets = [str(node.target) for node in graph.graph.nodes if node.op == "call_function"]
    program = Traced(
        source=_source(graph),
        arguments=tuple(names),
        outputs=tuple(paths),
        constants=tuple(constants),
        strides=tuple(tuple(value.stride()) for value in (*given, *constants.values())),
        settings=settings(),
        collectives=any(name.split(".")[0] in _COLLECTIVES for name in targets),
        groups=groups,
        reductions=reductions,
        draws=any(_draws(node.target) for node in graph.graph.nodes if node.op == "call_function"),
    )
    _require_known(targets)
    _require_default_group(graph)
    return Tracing(program, given, constants)


def _source(graph: Any) -> str:
    """As torch writes it; its collectives take groups and reductions that Python cannot make, so ours stand in."""
    text: str = graph.graph.python_code("self").src.strip()
    return _HEAD.sub("def call(", text).replace("torch.ops.c10d.", "c10d.")


def _whole_world(boxed: Any) -> tuple[int, ...]:
    """The ranks of a process group, which must be all of them: each rank of a capsule has the same one."""
    process_groups: Any = torch.distributed.ProcessGroup
    ranks = torch.distributed.get_process_group_ranks(process_groups.unbox(boxed))
    if len(ranks) != torch.distributed.get_world_size():
        raise RuntimeError(f"its collectives run in a group of {len(ranks)} of the ranks")
    return tuple(ranks)


def _held(graph: Any, name: str) -> Any:
    found = graph
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _draws(target: Any) -> bool:
    return isinstance(target, torch._ops.OpOverload) and torch.Tag.nondeterministic_seeded in target.tags


def _require_known(targets: list[str]) -> None:
    """Operators of packages that the reader may not have are no part of a program that runs by itself."""
    unknown = sorted({name for name in targets if name.startswith("c10d.")} - WRITTEN_DOWN)
    if unknown:
        raise RuntimeError(f"a capsule knows no collective {', '.join(unknown)}")
    foreign = sorted(
        {name for name in targets if "." in name and name.split(".")[0] not in _TORCHS and "<" not in name}
    )
    if foreign:
        raise RuntimeError(f"it calls operators that do not come with torch: {', '.join(foreign[:5])}")


_TORCHS = frozenset({"aten", "prims", "c10d", "_c10d_functional", "quantized", "inductor", "mkldnn", "mkl", "torch"})


WRITTEN_DOWN = frozenset(
    f"c10d.{name}.default" for name in ("allreduce_", "broadcast_", "_allgather_base_", "_reduce_scatter_base_")
)  # what run.py of a capsule does through torch's public functions
_COLLECTIVES = ("c10d", "_c10d_functional")


def settings() -> dict[str, str]:
    """What of torch a result may depend on, bit by bit."""
    return {
        "torch": str(torch.__version__),
        "threads": str(torch.get_num_threads()),
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "mkldnn": str(torch.backends.mkldnn.enabled),
        "matmul precision": torch.get_float32_matmul_precision(),
        "deterministic": str(torch.are_deterministic_algorithms_enabled()),
    }


def _require_default_group(graph: Any) -> None:
    """Functional collectives name their group by a number that another process gives to another group."""
    for node in graph.graph.nodes:
        functional = node.op == "call_function" and str(node.target).startswith("_c10d_functional")
        if functional and any(isinstance(value, str) and value.isdigit() and value != "0" for value in node.args):
            raise RuntimeError(f"{node.target} runs in a group of some of the ranks, known by its name alone")


def _distributed(others: dict[str, Any]) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
    """Process groups by their ranks, and reductions by their names; anything else cannot be written down."""
    groups: dict[str, tuple[int, ...]] = {}
    reductions: dict[str, str] = {}
    for name, value in others.items():
        kind = str(value._type()) if isinstance(value, torch.ScriptObject) else type(value).__name__
        if kind.endswith("ProcessGroup"):
            groups[name] = _whole_world(value)
        elif kind.endswith("ReduceOp"):
            reductions[name] = reduction_name(int(value.op())).upper()
        else:
            raise RuntimeError(f"the call holds a {kind}, which cannot be written down")
    return groups, reductions
