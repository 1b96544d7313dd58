"""Checkpoints of a session on disk: written by all ranks below a hidden name, the manifest last (SE-8, SE-10, F-11).

A checkpoint is a folder `checkpoints/NAME` or `autosave/NAME`. While it is written it has a hidden name; each rank
writes its files, forces them to disk and then writes a receipt; whoever is last, or the coordinator, writes the
manifest and gives the folder its name. A folder without a manifest is no checkpoint, whatever it holds.
"""

import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path, PurePosixPath

from msgspec import Struct, ValidationError
from msgspec import json as msgspec_json
from msgspec.structs import replace

from paritrace.errors import EvidenceError, HostError, Outcome, RequestError
from paritrace.evidence.digests import sha256_hex, sha256_of
from paritrace.files import LOCAL, Files
from paritrace.session.checkpoint_records import (
    FORMAT,
    MANIFEST,
    VERSION,
    Manifest,
    Receipt,
    Written,
    digest_of_manifest,
    manifest_of,
)
from paritrace.session.commands import Body, Reason, bounded
from paritrace.session.directory import CHECKPOINTS
from paritrace.session.workload import OfRank

AUTOSAVE = "autosave"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")
_RECEIPT = "receipt-{}.json"
_ENCODER = msgspec_json.Encoder(order="sorted")


class Checkpoint(Struct, frozen=True):
    """A checkpoint that is whole by its manifest. `digest` is that of the manifest."""

    folder: Path
    manifest: Manifest
    digest: str

    @property
    def identity(self) -> Body:
        """What the journal has of it, for a comparison also when the files are gone."""
        manifest = self.manifest
        return {"digest": self.digest, "content": manifest.content_digest, "state_digests": manifest.state_digests}


def checked_name(name: object, /) -> str:
    """Return a name of a checkpoint, preview or capture; it never leads out of its folder (SE-17).

    Raises:
        RequestError: Refused: `bad_name`.
    """
    if not isinstance(name, str) or _NAME.match(name) is None:
        raise RequestError(
            f"{name!r:.120} is no name of this session",
            code="bad_name",
            fix="give letters, digits, dots, dashes and underscores, 100 at most, the first a letter or digit",
        )
    return name


def staging_of(command_id: str, /) -> str:
    """Return the hidden name under which a command writes; a caller's id may hold any character."""
    return f".saving-{sha256_hex(command_id.encode())[:16]}"


def path_of(directory: Path, name: str, /) -> Path:
    """Return where a checkpoint of a name lies: `autosave/NAME` names an autosave, a bare one a saved checkpoint."""
    kind, slash, rest = name.partition("/")
    if slash and kind in {AUTOSAVE, CHECKPOINTS}:
        return directory / kind / checked_name(rest)
    return directory / CHECKPOINTS / checked_name(name)


def seal(
    staging: Path,
    names: Iterable[str],
    receipt: Receipt,
    *,
    files: Files = LOCAL,
) -> Receipt:
    """Force what this rank wrote to disk and write its receipt, the last thing that it does (SE-8).

    Args:
        staging: The hidden folder that all ranks write to.
        names: The files that this rank wrote, relative to it.
        receipt: What else is to be said; returned with the files in it.

    Raises:
        EvidenceError: Refused: `unsaved_file`: a name leads elsewhere, or is no file that was written.
        HostError: Refused: the disk.
    """
    written: dict[str, Written] = {}
    for name in names:
        path = staging / _inside(name)
        if not files.exists(path) or not files.is_regular(path):
            raise _unsaved(f"{name} was named and is no file")
        found = sha256_of(files.iter_chunks(path, follow_links=False))
        written[str(PurePosixPath(name))] = Written(
            receipt.rank, found.num_bytes, found.sha256, of_rank=isinstance(name, OfRank)
        )
        files.sync_existing(path)
    whole = replace(receipt, files=written)
    files.replace(staging / _RECEIPT.format(receipt.rank), _ENCODER.encode(whole))
    return whole


def publish(staging: Path, path: Path, /, *, files: Files = LOCAL) -> Checkpoint:
    """Write the manifest of what all ranks wrote and give the folder its name, in this order (SE-8).

    Raises:
        EvidenceError: Refused: `not_a_checkpoint`: a rank's part is missing, or the ranks do not agree.
        HostError: Refused: `already_there`, and the disk's; nothing has the name.
    """
    receipts = [
        msgspec_json.decode(data, type=Receipt)
        for one in files.list(staging)
        if re.fullmatch(r"receipt-\d+\.json", one.name) and (data := files.read(one))
    ]
    manifest = manifest_of(receipts)
    if not isinstance(manifest, Manifest):
        raise _no_checkpoint(staging, manifest)
    data = _ENCODER.encode(manifest)
    files.replace(staging / MANIFEST, data)
    for receipt in receipts:
        files.remove(staging / _RECEIPT.format(receipt.rank))
    files.publish_folder(staging, path)
    return Checkpoint(path, manifest, digest_of_manifest(data))


def keep(directory: Path, facts: Body, /, *, files: Files = LOCAL) -> Body:
    """Publish a save that all ranks have written: what `Keep` asks of the coordinator's shell.

    Args:
        facts: of the action; the answers of the ranks stand in `ranks`.

    Returns:
        Name, path within the directory, digests, size in bytes and number of files, for `Written`.

    Raises:
        EvidenceError, HostError: Refused: as `publish`; what was written is removed.
    """
    told = facts["ranks"][0]
    name, staging = checked_name(told["name"]), directory / CHECKPOINTS / str(told["staging"])
    try:
        made = publish(staging, directory / CHECKPOINTS / name, files=files)
    except (EvidenceError, HostError) as error:
        if error.outcome is Outcome.REFUSED:
            discard(staging, files=files)
        raise
    return {
        "name": name,
        "path": f"{CHECKPOINTS}/{name}",
        **made.identity,
        "num_bytes": made.manifest.num_bytes,
        "num_files": len(made.manifest.files),
    }


def read_checkpoint(folder: Path, /, *, files: Files = LOCAL) -> Checkpoint:
    """Return a checkpoint by its manifest; no other file is opened.

    Raises:
        EvidenceError: Refused: `not_a_checkpoint`.
        HostError: Refused: it cannot be read.
    """
    data = files.read_if_present(folder / MANIFEST)
    if data is None:
        there = files.exists(folder)
        words = "it has no manifest, so its save did not end" if there else "there is nothing of this name"
        raise _no_checkpoint(folder, (Reason(-1, "no_manifest", words),))
    try:
        manifest = msgspec_json.decode(data, type=Manifest)
    except (ValidationError, ValueError) as error:
        raise _no_checkpoint(folder, (Reason(-1, "bad_manifest", f"its manifest cannot be read: {error}"),)) from None
    if manifest.format != FORMAT or manifest.version.partition(".")[0] != VERSION.partition(".")[0]:
        words = f"its format is {manifest.format} {manifest.version}, this paritrace reads {FORMAT} {VERSION}"
        raise _no_checkpoint(folder, (Reason(-1, "schema", words),))
    return Checkpoint(folder, manifest, digest_of_manifest(data))


def damages(checkpoint: Checkpoint, /, *, rank: int, world_size: int, files: Files = LOCAL) -> tuple[str, ...]:
    """Return what is wrong with the files of a checkpoint, a line for each, 500 at most (SE-22); nothing is loaded.

    Every rank looks at every size, and hashes the files whose turn it is, so that all ranks together hash each once.
    """
    found: list[str] = []
    for number, (name, written) in enumerate(checkpoint.manifest.files.items()):
        path = checkpoint.folder / name
        try:
            num_bytes = files.size(path)
            if num_bytes != written.num_bytes:
                found.append(f"{name}: {num_bytes} bytes where {written.num_bytes} were saved")
            elif number % world_size == rank and sha256_of(files.iter_chunks(path)).sha256 != written.sha256:
                found.append(f"{name}: its content is not what was saved")
        except HostError as error:
            found.append(f"{name}: {error.message}")
    return bounded(tuple(found))


def discard(folder: Path, /, *, files: Files = LOCAL) -> None:
    """Remove a folder that nobody needs any more; a disk that refuses leaves it, hidden as it is."""
    with suppress(HostError):
        for path in files.list_all(folder):
            if files.is_folder(path):
                discard(path, files=files)
            else:
                files.remove(path)
        files.remove_folder(folder)


def _inside(name: object) -> PurePosixPath:
    path = PurePosixPath(str(name))
    if path.is_absolute() or ".." in path.parts or not path.parts or str(name) == MANIFEST:
        raise _unsaved(f"{name!r:.120} is no name of a file of a checkpoint")
    return path


def _unsaved(words: str) -> EvidenceError:
    return EvidenceError(
        words, code="unsaved_file", fix="`save` returns the names of the files that it wrote below the folder given"
    )


def _no_checkpoint(folder: Path, reasons: tuple[Reason, ...]) -> EvidenceError:
    return EvidenceError(
        f"{folder.name} is no checkpoint: {'; '.join(reason.words for reason in reasons)}",
        code="not_a_checkpoint",
        fix="choose another one: `paritrace session status` names the last, `autosave/` holds those made by itself",
        details=tuple(reason.words for reason in reasons),
    )
