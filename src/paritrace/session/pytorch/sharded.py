"""Saves, inspects and applies a sharded state by `torch.distributed.checkpoint` (SE-8).

For FSDP and other models of DTensors: every rank writes its shards, `inspect` reads the metadata alone and keeps no
tensor, `apply` reads the shards this rank needs, whatever number of ranks wrote them: a workload whose `accepts` says
`world_sizes` is loaded by another number of ranks, too. The step is that of the checkpoint's manifest.
"""

from pathlib import Path
from typing import Any, cast

import torch.distributed as dist
from torch import Tensor
from torch.distributed.checkpoint.filesystem import FileSystemReader
from torch.distributed.checkpoint.metadata import BytesStorageMetadata, TensorStorageMetadata
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)
from torch.distributed.checkpoint.state_dict_loader import load as read
from torch.distributed.checkpoint.state_dict_saver import save as write

from paritrace.errors import EvidenceError
from paritrace.evidence.digests import sha256_hex
from paritrace.session.checkpoints import read_checkpoint
from paritrace.session.pytorch import random_streams
from paritrace.session.pytorch.checkpoints import notes_of, read_streams, reasons_against, save_streams
from paritrace.session.pytorch.parts import Parts, described
from paritrace.session.workload import Context, Inspected, Refusal

METADATA = ".metadata"
_FLAT = StateDictOptions(flatten_optimizer_state_dict=True)


def save(ctx: Context, parts: Parts, folder: Path, /) -> tuple[str, ...]:
    """Write this rank's shards below `folder`, all ranks together, and return the names of its files."""
    before = {path.name for path in folder.iterdir()}
    write(_state(parts), checkpoint_id=folder, no_dist=not dist.is_initialized())
    own = {
        path.name
        for path in folder.iterdir()
        if path.name not in before
        and (path.name.startswith(f"__{ctx.rank}_") or (ctx.rank == 0 and path.name == METADATA))
    }
    return (*sorted(own), *save_streams(ctx, folder))


def inspect(ctx: Context, parts: Parts, folder: Path, /) -> Inspected | Refusal:
    """Return what `apply` takes, or every reason against it: names, shapes, dtypes; no shard is opened."""
    reasons: list[str] = []
    step, layout = 0, ""
    try:
        step = read_checkpoint(folder).manifest.origin.step
        stored = FileSystemReader(folder).read_metadata().state_dict_metadata
        reasons += _misfits(parts, stored)
        layout = "\n".join(f"{name} {_described(one)}" for name, one in sorted(stored.items()))
    except EvidenceError as error:
        reasons += error.details
    except Exception as error:  # noqa: BLE001  whatever the reader of damaged metadata raises
        reasons.append(f"{METADATA}: cannot be read: {type(error).__name__}: {error}")
    streams = read_streams(ctx, folder)
    reasons += reasons_against(streams)
    if reasons:
        return Refusal(tuple(reasons))
    digest = sha256_hex(f"step {step}\n{layout}".encode())
    notes = notes_of(streams)
    return Inspected(step=step, digest=digest, retained_bytes=0, sharded=True, notes=notes, payload=(folder, streams))


def apply(parts: Parts, inspected: Inspected, /) -> int:
    """Read the shards into the resident state, all ranks together; return the step to go on from."""
    folder, streams = cast("tuple[Path, dict[str, Any] | None]", inspected.payload)
    state = _state(parts)
    read(state, checkpoint_id=folder, no_dist=not dist.is_initialized())
    set_model_state_dict(parts.model, state["model"])
    if parts.optimizer is not None:
        set_optimizer_state_dict(parts.model, parts.optimizer, state["optimizer"], options=_FLAT)
    for name, part in parts.more.items():
        part.load_state_dict(state[name])
    if streams is not None:
        random_streams.put_back(streams)
    return inspected.step


def _state(parts: Parts) -> dict[str, Any]:
    state: dict[str, Any] = {"model": get_model_state_dict(parts.model)}
    if parts.optimizer is not None:
        state["optimizer"] = get_optimizer_state_dict(parts.model, parts.optimizer, options=_FLAT)
    for name, part in parts.more.items():
        state[name] = part.state_dict()
    return state


def _misfits(parts: Parts, stored: dict[str, Any]) -> list[str]:
    """Of the model all; of an optimizer that has not stepped yet nothing is known to compare, and none is made up."""
    ours: dict[str, object] = {f"model.{name}": value for name, value in get_model_state_dict(parts.model).items()}
    if parts.optimizer is not None and parts.optimizer.state:
        flat = get_optimizer_state_dict(parts.model, parts.optimizer, options=_FLAT)
        ours |= {f"optimizer.{name}": value for name, value in flat.items()}
    compared = tuple({name.partition(".")[0] for name in ours})
    theirs = {name: one for name, one in stored.items() if name.partition(".")[0] in compared}
    found = [f"{name}: missing" for name in sorted(ours.keys() - theirs.keys())]
    found += [f"{name}: unknown here" for name in sorted(theirs.keys() - ours.keys())]
    for name in sorted(ours.keys() & theirs.keys()):
        value = ours[name]
        if isinstance(value, Tensor) and described(value) != _described(theirs[name]):
            found.append(f"{name}: {_described(theirs[name])} where {described(value)} belongs")
    return found


def _described(stored: TensorStorageMetadata | BytesStorageMetadata) -> str:
    if isinstance(stored, TensorStorageMetadata):
        return f"{tuple(stored.size)} {str(stored.properties.dtype).removeprefix('torch.')}"
    return "no tensor"
