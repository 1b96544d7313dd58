"""Autosaves whose rank ended before it could tell of them: found by their manifests, told by us (SE-10, SE-15)."""

from collections.abc import Iterable
from pathlib import Path

from paritrace.errors import EvidenceError, HostError
from paritrace.files import LOCAL, Files
from paritrace.session.checkpoints import AUTOSAVE, Checkpoint, read_checkpoint
from paritrace.session.commands import Body
from paritrace.session.journal import Line

_BEGINS = frozenset({"admitted", "resumed"})


def untold_autosaves(
    directory: Path, lines: Iterable[Line], /, *, generation: int, files: Files = LOCAL
) -> tuple[Body, ...]:
    """Return the facts of `checkpoint` lines that a journal lacks, the oldest first.

    Only those of the last stretch of steps of this generation: an earlier one would be taken for the last segment's.
    """
    told: set[str] = set()
    epoch: int | None = None
    for line in lines:
        if line.what == "checkpoint" and line.facts.get("event") == "autosaved":
            told.add(str(line.facts.get("name")))
        elif line.what == "run" and line.generation == generation and line.facts.get("event") in _BEGINS:
            epoch = line.facts.get("epoch")
    found = [one for one in _made(directory / AUTOSAVE, files) if f"{AUTOSAVE}/{one.folder.name}" not in told]
    last = [
        one
        for one in found
        if (one.manifest.origin.generation, one.manifest.origin.command_epoch) == (generation, epoch)
    ]
    return tuple(_facts(one) for one in sorted(last, key=lambda one: one.manifest.made_unix_ns))


def _made(folder: Path, files: Files) -> list[Checkpoint]:
    if not files.exists(folder):
        return []
    found: list[Checkpoint] = []
    for path in files.list(folder):
        try:
            found.append(read_checkpoint(path, files=files))
        except (EvidenceError, HostError):  # no checkpoint: nothing is told of it
            continue
    return found


def _facts(one: Checkpoint) -> Body:
    return {
        "event": "autosaved",
        "name": f"{AUTOSAVE}/{one.folder.name}",
        "step": one.manifest.origin.step,
        **one.identity,
    }
