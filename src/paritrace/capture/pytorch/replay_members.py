"""Whose parameters a replayed call uses: the recorded ones under the names of this program's module (CP-26)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from paritrace.capture.pytorch.replay_values import Values
from paritrace.errors import EvidenceError, Outcome
from paritrace.evidence.dumps import Member

WRAPPING = frozenset({"_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"})
MOST_NAMED = 6


@dataclass(frozen=True)
class Members:
    """Tensors by the name that this module has for them, and for each of those its recorded name."""

    tensors: dict[str, torch.Tensor]
    recorded: dict[str, str]
    own: tuple[str, ...]  # buffers that stay the program's own


def forced_members(
    module: torch.nn.Module, members: tuple[Member, ...], values: Values, *, names: Mapping[str, str]
) -> Members:
    """The recorded parameters and buffers for this module, matched by name inside it or by `names`.

    Raises:
        EvidenceError: Failed, `unlike_parameters`: one has no partner, or another shape; all of them are named.
    """
    owned = _owned(module)
    tensors: dict[str, torch.Tensor] = {}
    recorded: dict[str, str] = {}
    missing: list[str] = []
    for member in members:
        found = values.tensor(member.tensor)
        for name in member.names:
            own = owned.get(names.get(name, name))
            if own is not None and found is not None and own[1].shape == found.shape:
                tensors[own[0]], recorded[own[0]] = found, name
            elif not member.buffer:
                missing.append(f"{name}: {_why(own, found)}")
    left = [name for name, (full, _) in owned.items() if full not in tensors]
    buffers = {name for name, _ in module.named_buffers(remove_duplicate=False)}
    missing += [f"{name}: not recorded" for name in left if owned[name][0] not in buffers]
    if missing:
        raise _unlike(missing)
    return Members(tensors, recorded, tuple(name for name in left))


def own_members(module: torch.nn.Module) -> Members:
    """The program's own parameters and buffers."""
    owned = {name: (full, tensor) for name, (full, tensor) in _owned(module).items()}
    tensors = {full: tensor.detach().requires_grad_(tensor.requires_grad) for full, tensor in owned.values()}
    return Members(tensors, {full: name for name, (full, _) in owned.items()}, ())


def _owned(module: torch.nn.Module) -> dict[str, tuple[str, torch.Tensor]]:
    """Each parameter and buffer by its name as the author wrote it, with torch's name for it."""
    everything = (*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False))
    return {plain_name(name): (name, tensor) for name, tensor in everything}


def plain_name(name: str) -> str:
    """A name without what torch's wrappers put into it."""
    return ".".join(part for part in name.split(".") if part not in WRAPPING)


def _why(own: tuple[str, torch.Tensor] | None, found: torch.Tensor | None) -> str:
    if own is None:
        return "not in this module"
    return "not kept" if found is None else f"{tuple(found.shape)} there, {tuple(own[1].shape)} here"


def _unlike(missing: list[str]) -> EvidenceError:
    more = f" and {len(missing) - MOST_NAMED} more" if len(missing) > MOST_NAMED else ""
    return EvidenceError(
        f"the module has other parameters than the recorded one: {'; '.join(missing[:MOST_NAMED])}{more}",
        code="unlike_parameters",
        fix="say which is which: --parameter RECORDED=OWN, for each",
        outcome=Outcome.FAILED,
    )
