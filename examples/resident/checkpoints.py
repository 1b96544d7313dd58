"""Saves and restores the training: one file of all ranks' common state, and one random stream per rank (SE-8)."""

import hashlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from examples.resident.training import Training
from paritrace.session.workload import Inspected, Refusal

COMMON = "state.pt"
SECTIONS = ("step", "settings", "model", "optimizer")


def save(training: Training, folder: Path, *, rank: int, step: int) -> tuple[str, ...]:
    """Write this rank's files and return their names. Dropout differs by rank: no rank may restore another's stream."""
    own = f"random-{rank}.pt"
    torch.save(torch.get_rng_state(), folder / own)
    if rank != 0:
        return (own,)
    state = {
        "step": step,
        "settings": asdict(training.settings),
        "model": training.model.state_dict(),
        "optimizer": training.optimizer.state_dict(),
    }
    torch.save(state, folder / COMMON)
    return (COMMON, own)


def inspect(training: Training, folder: Path, *, rank: int) -> Inspected | Refusal:
    """Read and check everything; nothing of the training is touched. Every reason is said at once."""
    missing = [name for name in (COMMON, f"random-{rank}.pt") if not (folder / name).is_file()]
    if missing:
        return Refusal(tuple(f"{name}: not in the checkpoint" for name in missing))
    data = (folder / COMMON).read_bytes()
    try:
        state: dict[str, Any] = torch.load(folder / COMMON, weights_only=True)
        stream = torch.load(folder / f"random-{rank}.pt", weights_only=True)
    except Exception as error:  # noqa: BLE001  whatever the reader of a damaged file raises
        return Refusal((f"cannot be read: {error}",))
    reasons = [f"{name}: no such section" for name in SECTIONS if name not in state]
    if not reasons:
        reasons = [*_of_weights(training, state["model"]), *_of_optimizer(training, state["optimizer"])]
    if reasons:
        return Refusal(tuple(reasons))
    return Inspected(
        step=state["step"],
        digest=hashlib.sha256(data).hexdigest(),
        retained_bytes=len(data),
        values=state["settings"],
        payload=(state, stream),
    )


def restore(training: Training, inspected: Inspected) -> int:
    """Put an inspected checkpoint in place of what is there; return the step to go on from."""
    state, stream = inspected.payload  # type: ignore[misc]  what `inspect` put there
    training.model.load_state_dict(state["model"])
    training.optimizer.load_state_dict(state["optimizer"])
    torch.set_rng_state(stream)
    return inspected.step


def _of_weights(training: Training, stored: dict[str, torch.Tensor]) -> list[str]:
    ours = training.model.state_dict()
    reasons = [f"{name}: missing" for name in ours if name not in stored]
    reasons += [f"{name}: no weight of this model" for name in stored if name not in ours]
    for name in ours.keys() & stored.keys():
        wanted, found = (ours[name].shape, ours[name].dtype), (stored[name].shape, stored[name].dtype)
        if wanted != found:
            reasons.append(f"{name}: {tuple(found[0])} {found[1]} where {tuple(wanted[0])} {wanted[1]} belongs")
    return sorted(reasons)


def _of_optimizer(training: Training, stored: dict[str, Any]) -> list[str]:
    ours, theirs = training.optimizer.state_dict()["param_groups"], stored["param_groups"]
    sizes = [len(group["params"]) for group in ours], [len(group["params"]) for group in theirs]
    return [] if sizes[0] == sizes[1] else [f"optimizer: groups of {sizes[1]} parameters where {sizes[0]} belong"]
