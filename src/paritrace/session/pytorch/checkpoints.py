"""Saves, inspects and applies the state of a torch workload in whole files: the state of all ranks, streams of each.

For a state that is the same on every rank, as under DDP: any number of ranks loads it. `inspect` is pure; with
`retain=False` it reads names, shapes and dtypes alone and keeps no tensor, and `apply` reads the file again (SE-8,
SE-30).
"""

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from paritrace.errors import EvidenceError
from paritrace.evidence.digests import sha256_hex
from paritrace.session.checkpoints import read_checkpoint
from paritrace.session.pytorch import random_streams
from paritrace.session.pytorch.fitting import misfits
from paritrace.session.pytorch.parts import Parts, described
from paritrace.session.workload import Context, Inspected, OfRank, Refusal, Unchanged

STATE = "state.pt"
FORMAT = "paritrace-torch-state"
VERSION = "1.0"


def save(ctx: Context, parts: Parts, folder: Path, /, *, step: int) -> tuple[str, ...]:
    """Write this rank's files below `folder` and return their names: rank 0 the state, every rank its streams."""
    own = save_streams(ctx, folder)
    if ctx.rank != 0:
        return own
    state: dict[str, Any] = {"format": FORMAT, "version": VERSION, "step": step, "model": parts.model.state_dict()}
    if parts.optimizer is not None:
        state["optimizer"] = parts.optimizer.state_dict()
    for name, part in parts.more.items():
        state[name] = part.state_dict()
    _write(state, folder / STATE)
    return (STATE, *own)


def _write(state: object, path: Path) -> None:
    """Save, and say how much room there is where that fails: torch's own words of a full disk name an offset."""
    try:
        torch.save(state, path)
    except RuntimeError as error:
        free = shutil.disk_usage(path.parent).free
        raise OSError(f"{path.name} could not be written, {free:,} bytes are free there: {error}") from error


def inspect(ctx: Context, parts: Parts, folder: Path, /, *, retain: bool = True) -> Inspected | Refusal:
    """Return what `apply` takes, or every reason why nothing can be applied; the resident state is only looked at.

    Args:
        ctx: Whose streams are read.
        parts: The resident parts, which the stored ones have to fit.
        folder: The checkpoint's.
        retain: Whether the state is held in host memory until `apply`; its size is told as `retained_bytes`.
    """
    stored = _read(folder / STATE, mapped=not retain)
    streams = read_streams(ctx, folder)
    reasons = (stored,) if isinstance(stored, str) else (*_of_schema(stored), *misfits(parts, stored))
    reasons = (*reasons, *reasons_against(streams))
    if reasons:
        return Refusal(reasons)
    state = cast("dict[str, Any]", stored)
    return Inspected(
        step=state["step"],
        digest=_digest_of_layout(state),
        retained_bytes=_num_bytes(state) if retain else 0,
        notes=notes_of(streams),
        payload=(state if retain else folder, streams),
    )


def apply(parts: Parts, inspected: Inspected, /) -> int:
    """Put an inspected state in place of the resident one, the streams last; return the step to go on from.

    Raises:
        Unchanged: the file, or the model, is not what it was when it was inspected; nothing has been touched.
    """
    kept, streams = cast("tuple[dict[str, Any] | Path, dict[str, Any] | None]", inspected.payload)
    stored = _read(kept / STATE, mapped=False) if isinstance(kept, Path) else kept
    reasons = (stored,) if isinstance(stored, str) else misfits(parts, stored)
    if reasons:
        raise Unchanged(*reasons)
    state = cast("dict[str, Any]", stored)
    parts.model.load_state_dict(state["model"], strict=True)
    if parts.optimizer is not None:
        parts.optimizer.load_state_dict(state["optimizer"])
    for name, part in parts.more.items():
        part.load_state_dict(state[name])
    if streams is not None:
        random_streams.put_back(streams)
    return inspected.step


def save_streams(ctx: Context, folder: Path, /) -> tuple[str, ...]:
    """Write the random streams of this rank, which another number of ranks does without."""
    name = _streams_of(ctx)
    _write(random_streams.streams(), folder / name)
    return (OfRank(name),)


def read_streams(ctx: Context, folder: Path, /) -> dict[str, Any] | str | None:
    """Return the random streams of this rank, or why there are none; None where fewer ranks have saved theirs."""
    name = _streams_of(ctx)
    with suppress(EvidenceError):  # a folder without a manifest is looked at as one of as many ranks
        manifest = read_checkpoint(folder).manifest
        if manifest.origin.world_size != ctx.world_size and name not in manifest.files:
            return None
    return _read(folder / name, mapped=False)


def reasons_against(streams: dict[str, Any] | str | None, /) -> tuple[str, ...]:
    """Return why streams that were read cannot be put back; None of them are no reason."""
    match streams:
        case None:
            return ()
        case str():
            return (streams,)
        case _:
            return tuple(random_streams.reasons_against(streams))


def notes_of(streams: dict[str, Any] | str | None, /) -> tuple[str, ...]:
    """Return what is to be said of a rank that draws on as it would have without the load."""
    return ("no random streams were saved for this rank: its own go on",) if streams is None else ()


def _streams_of(ctx: Context) -> str:
    return f"random-{ctx.rank}.pt"


def _read(path: Path, *, mapped: bool) -> dict[str, Any] | str:
    if not path.is_file():
        return f"{path.name}: not in the checkpoint"
    try:
        found = torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    except Exception as error:  # noqa: BLE001  whatever the reader of a damaged file raises
        return f"{path.name}: cannot be read: {type(error).__name__}: {error}"
    return found if isinstance(found, dict) else f"{path.name}: holds {type(found).__name__}, no state"


def _of_schema(stored: dict[str, Any]) -> tuple[str, ...]:
    if stored.get("format") != FORMAT:
        return (f"{STATE}: its format is {stored.get('format')!r}, not {FORMAT}",)
    if str(stored.get("version")).partition(".")[0] != VERSION.partition(".")[0]:
        return (f"{STATE}: its version is {stored.get('version')!r}, this paritrace reads {VERSION}",)
    return ()


def _digest_of_layout(state: dict[str, Any]) -> str:
    """Names, shapes and dtypes and the step; the bytes are in the digest of the file."""
    lines = [f"{name} {described(tensor)}" for name, tensor in sorted(state["model"].items())]
    return sha256_hex("\n".join([f"step {state['step']}", *lines]).encode())


def _num_bytes(value: object) -> int:
    match value:
        case Tensor():
            return value.numel() * value.element_size()
        case dict():
            return sum(_num_bytes(one) for one in value.values())
        case list() | tuple():
            return sum(_num_bytes(one) for one in value)
        case _:
            return 0
