"""Removing a run: only what is one, never through a link, never while it may be written (EV-16, P4)."""

import secrets
from pathlib import Path

from msgspec import Struct

from paritrace.errors import EvidenceError, HostError, Outcome
from paritrace.evidence.dumps import TENSORS_FOLDER
from paritrace.files import LOCAL, TEMPORARY_PREFIX, Files
from paritrace.runs import draws, measured
from paritrace.runs.documents import read_envelope
from paritrace.runs.envelope import ATTACHMENTS_FOLDER, ENVELOPE_NAME, LOCK_NAME, SESSIONS_FOLDER, TRIGGERS_FOLDER
from paritrace.runs.pack import peek_envelope, require_not_running

COMPARISONS_FOLDER = "comparisons"
REMOVED_PREFIX = f"{TEMPORARY_PREFIX}removed-"  # a folder of this name is a removal that was cut off
_OURS = frozenset(
    {
        ENVELOPE_NAME,
        LOCK_NAME,
        SESSIONS_FOLDER,
        ATTACHMENTS_FOLDER,
        COMPARISONS_FOLDER,
        TRIGGERS_FOLDER,
        TENSORS_FOLDER,
        draws.FOLDER,
        measured.FOLDER,
    }
)


class Removed(Struct, frozen=True):
    path: str
    run_id: str
    num_files: int
    num_bytes: int


def remove_run(path: Path, *, files: Files = LOCAL) -> Removed:
    """Remove a run directory or an archive of a run.

    The directory takes a hidden name first, in one step: killed half-way, the run is gone and what is left of it
    carries that name, which `runs ls` reports.

    Raises:
        HostError: Refused, `not_found`; Failed when some files could not be removed: the message says where they are.
        EvidenceError: Refused: `not_a_run`, `foreign_content` (somebody put other files there), `run_is_running`.
    """
    if not files.exists(path):
        raise HostError(f"{path} does not exist", code="not_found", fix="check the path of the run")
    if files.is_regular(path):
        return _remove_archive(path, files)
    if not files.is_folder(path):
        raise _not_a_run(path, "it is a symbolic link or a special file; only what it points to may be a run")
    return _remove_folder(path, files)


def _remove_archive(path: Path, files: Files) -> Removed:
    run_id = peek_envelope(path, files=files).envelope.run_id
    num_bytes = files.size(path)
    files.remove(path)
    return Removed(path=str(path), run_id=run_id, num_files=1, num_bytes=num_bytes)


def _remove_folder(path: Path, files: Files) -> Removed:
    envelope = read_envelope(path, files=files)
    if envelope is None:
        raise _not_a_run(path, f"it has no {ENVELOPE_NAME}")
    strange = [found.name for found in files.list_all(path) if not _is_ours(found.name)]
    if strange:
        raise EvidenceError(
            f"{path} also holds {strange[0]!r}, which no run holds",
            code="foreign_content",
            fix="move your own files out of the run directory, then try again",
        )
    require_not_running(envelope, doing="remove")
    hidden = path.parent / f"{REMOVED_PREFIX}{secrets.token_hex(8)}"
    files.rename_folder(path, hidden)
    try:
        num_files, num_bytes = _remove_tree(hidden, files)
    except HostError as error:
        raise HostError(
            f"run {envelope.run_id} is no longer at {path}, but a part of it remains in {hidden}: {error.message}",
            code="removal_cut_off",
            fix="mend the cause and remove that folder",
            outcome=Outcome.FAILED,
        ) from error
    return Removed(path=str(path), run_id=envelope.run_id, num_files=num_files, num_bytes=num_bytes)


def _is_ours(name: str) -> bool:
    return name in _OURS or name.startswith(TEMPORARY_PREFIX)


def _remove_tree(folder: Path, files: Files) -> tuple[int, int]:
    """Remove a folder bottom up; a symbolic link is removed itself, whatever it points to."""
    num_files, num_bytes = 0, 0
    for path in files.list_all(folder):
        if files.is_folder(path):
            below = _remove_tree(path, files)
            num_files, num_bytes = num_files + below[0], num_bytes + below[1]
            continue
        num_bytes += files.size(path) if files.is_regular(path) else 0
        files.remove(path)
        num_files += 1
    files.remove_folder(folder)
    return num_files, num_bytes


def _not_a_run(path: Path, why: str) -> EvidenceError:
    return EvidenceError(
        f"{path} is not a run: {why}", code="not_a_run", fix="name a run directory or an archive of one"
    )
