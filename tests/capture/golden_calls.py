"""Golden calls of small modules, made without a run, for tests of replays."""

import itertools
import random
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch

from paritrace.capture.pytorch.replay_answer import exact
from paritrace.compare.judging import Answer
from paritrace.evidence.dumps import (
    TENSOR_KEY,
    TENSOR_SUFFIX,
    TENSORS_FOLDER,
    Branch,
    GeneratorState,
    Golden,
    KeptTensor,
    Member,
    Node,
    PlainLeaf,
    TensorLeaf,
    tree_text,
)
from paritrace.evidence.replays import REQUEST_FORMAT, VERSION, ReplayRequest, ReplayTask
from paritrace.evidence.tensor_bundles import Piece, bundle
from paritrace.runs.tensors import open_key

numbers = itertools.count()


def golden_of(module: torch.nn.Module, folder: Path, *args: Any, **kwargs: Any) -> Golden:
    """The record of a call that is about to be made, its tensors below `folder`; no outputs."""
    positional = Branch("tuple", tuple(_node(value, f"args[{n}]", folder) for n, value in enumerate(args)))
    named = Branch(
        "dict",
        tuple(_node(value, f"kwargs.{key}", folder) for key, value in kwargs.items()),
        keys=tuple(PlainLeaf("str", key) for key in kwargs),
    )
    parameters = {name: (tensor, False) for name, tensor in module.named_parameters()}
    buffers = {name: (tensor, True) for name, tensor in module.named_buffers()}
    members = tuple(
        Member((name,), kept(tensor, folder), buffer) for name, (tensor, buffer) in (parameters | buffers).items()
    )
    version, words, _ = random.getstate()
    generators = (
        GeneratorState("torch_cpu", stored(torch.get_rng_state(), folder)),
        GeneratorState(
            "python", stored(torch.tensor(words, dtype=torch.int64), folder), {"version": str(version), "gauss": ""}
        ),
    )
    return Golden(
        id=0,
        call=-1,
        module="it",
        cls=type(module).__qualname__,
        number=0,
        step=0,
        microbatch=0,
        training=module.training,
        grad_enabled=True,
        inference=False,
        autocast=(),
        inputs=tree_text(Branch("tuple", (positional, named))),
        outputs="",
        members=members,
        generators=generators,
    )


def kept(tensor: torch.Tensor, folder: Path) -> KeptTensor:
    """The record of a tensor whose bytes are stored."""
    return KeptTensor(
        kept=stored(tensor, folder),
        dtype=str(tensor.dtype).removeprefix("torch."),
        shape=tuple(tensor.shape),
        strides=tuple(tensor.stride()),
        number=next(numbers),
        requires_grad=tensor.requires_grad,
    )


def stored(tensor: torch.Tensor, folder: Path) -> str:
    """Put a tensor's file below a run's folder; returns its digest."""
    data = b"".join(bytes(chunk) for chunk in bundle({TENSOR_KEY: exact(tensor)}))
    digest = sha256(data).hexdigest()
    (folder / TENSORS_FOLDER).mkdir(exist_ok=True)
    (folder / TENSORS_FOLDER / f"{digest}{TENSOR_SUFFIX}").write_bytes(data)
    return digest


def task_of(golden: Golden, folder: Path, **changes: Any) -> ReplayTask:
    """The task to replay it."""
    return ReplayTask("it", 0, "it", str(folder), golden, **changes)


def request_of(*tasks: ReplayTask, output: Path, trace: bool = False) -> ReplayRequest:
    """A request of these tasks."""
    return ReplayRequest(REQUEST_FORMAT, VERSION, str(output), tasks, until_step=0, trace=trace)


def answered(found: Any, pieces: Mapping[str, Piece], path: Path) -> Answer:
    """An answer as it is read from its file."""
    path.write_bytes(b"".join(bytes(chunk) for chunk in bundle(dict(pieces))))
    heads = ("recorded", "float64")
    return Answer(found, {key: open_key(path, key).array for key in pieces if key.startswith(heads)})


def _node(value: Any, path: str, folder: Path) -> Node:
    match value:
        case torch.Tensor():
            return TensorLeaf(path, kept(value, folder))
        case None:
            return PlainLeaf("none")
        case bool() | int() | str():
            return PlainLeaf(type(value).__name__, str(value))
        case float():
            return PlainLeaf("float", value.hex())
        case tuple() | list():
            items = tuple(_node(item, f"{path}[{n}]", folder) for n, item in enumerate(value))
            return Branch("tuple" if isinstance(value, tuple) else "list", items)
        case _:
            raise TypeError(type(value))
