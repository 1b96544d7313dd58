"""Several files of a folder that change together: promised first, so that a kill leaves all old or all new (EV-11)."""

import hashlib
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

from paritrace.clock import SYSTEM, Clock
from paritrace.errors import EvidenceError, HostError, Outcome
from paritrace.evidence import codec
from paritrace.evidence.ids import ProcessIdentity
from paritrace.files import LOCAL, Files
from paritrace.runs.intent_records import INTENT_FORMAT, VERSION, Extending, Intent, Recovery, Replacing
from paritrace.store.node_locks import holder_in_words, require_own_machine

INTENT_NAME = ".intent.json"
LOCK_NAME = ".intent.lock"
STAGED_PREFIX = ".intent-staged-"
WAIT_SECONDS = 60.0  # a change takes some ten forcings to disk, 0.1 s: enough for hundreds that wait for each other


class NewContent(Struct, frozen=True):
    """`old_sha256`: digest of the bytes that the caller read and changed, None where there was no file."""

    name: str
    old_sha256: str | None
    data: bytes


class MoreContent(Struct, frozen=True):
    """`old_length`: length of the file to which `data` is added; in pieces where it is more than memory should hold."""

    name: str
    old_length: int
    data: bytes | Iterable[bytes]


@contextmanager
def changing(
    folder: Path, process: ProcessIdentity, *, files: Files = LOCAL, clock: Clock = SYSTEM
) -> Generator[Recovery, None, None]:
    """Hold the folder's lock, what an earlier change left unfinished being recovered; yields what was done about it.

    Raises:
        HostError: Refused: `lock_timeout`, `lock_of_another_host`, what the disk says.
        EvidenceError: Refused, code `intent_conflict`.
    """
    path = folder / LOCK_NAME

    def admits(mark: bytes) -> None:
        require_own_machine(mark, process, path=path)

    mark = msgspec.json.encode(process)
    with files.locked_by(path, mark, admits=admits, told=holder_in_words, clock=clock, wait_seconds=WAIT_SECONDS):
        yield recover(folder, files=files)


def change_together(folder: Path, changes: Sequence[NewContent | MoreContent], *, files: Files = LOCAL) -> None:
    """Make all changes, or none; to be called inside `changing`.

    Raises:
        EvidenceError: Refused, code `changed_meanwhile`: a file is not what the caller had read.
        HostError: Refused, nothing changed; Failed, the next opener of the folder finishes it.
    """
    for change in changes:
        _require_old(folder, change, files)
    promised = tuple(_staged(folder, number, change, files) for number, change in enumerate(changes))
    intent = Intent(format=INTENT_FORMAT, version=VERSION, changes=promised)
    files.replace(folder / INTENT_NAME, codec.encode_document(intent))
    try:
        _finish(folder, intent, files)
    except HostError as error:  # the promise stands, and a part of the change may: "nothing changed" would be untrue
        error.outcome = Outcome.FAILED
        error.fix = f"{error.fix}: the next command that opens {folder} finishes the change"
        raise


def recover(folder: Path, *, files: Files = LOCAL) -> Recovery:
    """Finish or drop what a killed change left; to be called under the folder's lock.

    Raises:
        EvidenceError: Refused, code `intent_conflict`: a file is neither as before nor as promised; nothing is touched.
    """
    data = files.read_if_present(folder / INTENT_NAME)
    if data is None:
        return Recovery.ROLLED_BACK if _drop_staged(folder, files) else Recovery.NOTHING
    intent = codec.decode_document(data, Intent, name=str(folder / INTENT_NAME))
    states = [_state(folder, change, files) for change in intent.changes]
    if any(state is None for state in states):
        name = intent.changes[states.index(None)].name
        raise EvidenceError(
            f"{folder / name} is neither what it was before a change that was cut off, nor what it was to become",
            code="intent_conflict",
            fix=f"restore {name} from a copy, or remove {folder / INTENT_NAME} to keep what is there now",
        )
    whole = all(state or _is_whole(folder, change, files) for state, change in zip(states, intent.changes, strict=True))
    if whole:
        _finish(folder, intent, files)
        return Recovery.ROLLED_FORWARD
    files.remove(folder / INTENT_NAME)
    _drop_staged(folder, files)
    return Recovery.ROLLED_BACK


def _require_old(folder: Path, change: NewContent | MoreContent, files: Files) -> None:
    path = folder / change.name
    if isinstance(change, MoreContent):
        is_old = (files.size(path) if files.exists(path) else 0) == change.old_length
    else:
        is_old = _digest(path, files) == change.old_sha256
    if not is_old:
        raise EvidenceError(
            f"{path} changed since it was read",
            code="changed_meanwhile",
            fix="read it again and repeat the change; nothing was changed",
        )


def _staged(folder: Path, number: int, change: NewContent | MoreContent, files: Files) -> Replacing | Extending:
    staged = f"{STAGED_PREFIX}{number}"
    digest, num_bytes = hashlib.sha256(), 0
    with files.replacing(folder / staged) as replacement:
        for piece in (change.data,) if isinstance(change.data, bytes) else change.data:
            replacement.write(piece)
            digest.update(piece)
            num_bytes += len(piece)
    if isinstance(change, NewContent):
        return Replacing(change.name, change.old_sha256, digest.hexdigest(), staged)
    return Extending(change.name, change.old_length, num_bytes, digest.hexdigest(), staged)


def _finish(folder: Path, intent: Intent, files: Files) -> None:
    for change in intent.changes:
        if not _state(folder, change, files):
            _make(folder, change, files)
    files.remove(folder / INTENT_NAME)
    _drop_staged(folder, files)


def _make(folder: Path, change: Replacing | Extending, files: Files) -> None:
    path, staged = folder / change.name, folder / change.staged
    if isinstance(change, Replacing):
        with files.replacing(path) as replacement:
            for piece in files.iter_chunks(staged):
                replacement.write(piece)
        return
    written = max(0, (files.size(path) if files.exists(path) else 0) - change.old_length)
    with files.opened(staged) as opened:
        files.extend_scratch(path, opened.chunks(written, change.num_bytes - written))
    files.sync_existing(path)


def _state(folder: Path, change: Replacing | Extending, files: Files) -> bool | None:
    """Say whether a change is made; None where the file is something else than before, in the middle, or after."""
    path = folder / change.name
    if isinstance(change, Replacing):
        found = _digest(path, files)
        return True if found == change.new_sha256 else (False if found == change.old_sha256 else None)
    size = files.size(path) if files.exists(path) else 0
    if size < change.old_length:
        return None
    num_tail = size - change.old_length
    if num_tail == change.num_bytes and _digest_of(path, change.old_length, num_tail, files) == change.sha256:
        return True
    return None if not _begins_as_staged(folder, change, num_tail, files) else False


def _begins_as_staged(folder: Path, change: Extending, num_tail: int, files: Files) -> bool:
    """Say whether what stands behind the old length is a beginning of the staged bytes, or those are not whole."""
    if not _is_whole(folder, change, files):
        return True
    if num_tail > change.num_bytes:
        return False
    expected = _digest_of(folder / change.staged, 0, num_tail, files)
    return _digest_of(folder / change.name, change.old_length, num_tail, files) == expected


def _is_whole(folder: Path, change: Replacing | Extending, files: Files) -> bool:
    wanted = change.new_sha256 if isinstance(change, Replacing) else change.sha256
    return _digest(folder / change.staged, files) == wanted


def _digest_of(path: Path, start: int, length: int, files: Files) -> str:
    digest = hashlib.sha256()
    if length:
        with files.opened(path) as opened:
            for chunk in opened.chunks(start, length):
                digest.update(chunk)
    return digest.hexdigest()


def _digest(path: Path, files: Files) -> str | None:
    if not files.exists(path):
        return None
    digest = hashlib.sha256()
    for chunk in files.iter_chunks(path):
        digest.update(chunk)
    return digest.hexdigest()


def _drop_staged(folder: Path, files: Files) -> bool:
    found = [path for path in files.list_all(folder) if path.name.startswith(STAGED_PREFIX)]
    for path in found:
        files.remove(path)
    return bool(found)
