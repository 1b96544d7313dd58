"""Looks at the checkpoints of a session for a start: manifests and sizes, no content (SE-10, SE-37)."""

from pathlib import Path

from paritrace.errors import EvidenceError, HostError
from paritrace.files import LOCAL, Files
from paritrace.session.checkpoint_choice import Candidate, Choice, Wanted, choice
from paritrace.session.checkpoint_records import MANIFEST
from paritrace.session.checkpoints import AUTOSAVE, read_checkpoint
from paritrace.session.directory import CHECKPOINTS

LATEST = "latest"


def latest(directory: Path, wanted: Wanted, /, *, files: Files = LOCAL) -> Choice:
    """Return which checkpoint of a session was made last, saved or by itself, and why others are not taken (SE-37)."""
    return choice(candidates(directory, files=files), wanted)


def candidates(directory: Path, /, *, files: Files = LOCAL) -> list[Candidate]:
    """Return every folder that may be a checkpoint, also those whose save did not end."""
    found: list[Candidate] = []
    for kind in (CHECKPOINTS, AUTOSAVE):
        if files.exists(directory / kind):
            found += [_candidate(kind, folder, files) for folder in _folders(directory / kind, files)]
    return found


def _folders(place: Path, files: Files) -> list[Path]:
    return [path for path in files.list(place) if files.is_folder(path)]


def _candidate(kind: str, folder: Path, files: Files) -> Candidate:
    name = f"{kind}/{folder.name}"
    try:
        checkpoint = read_checkpoint(folder, files=files)
    except (EvidenceError, HostError) as error:
        return Candidate(name, error.message, {})
    sizes = {file: _size(folder / file, files) for file in checkpoint.manifest.files if file != MANIFEST}
    return Candidate(name, checkpoint.manifest, sizes)


def _size(path: Path, files: Files) -> int | None:
    try:
        return files.size(path)
    except HostError:
        return None
