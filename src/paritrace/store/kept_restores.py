"""Restored stores that stay: named by run and head digests, and used again once every file was hashed (ST-25)."""

import secrets
from pathlib import Path

import msgspec
from msgspec import Struct

from paritrace.errors import EvidenceError, HostError
from paritrace.evidence.digests import sha256_hex, sha256_of
from paritrace.files import LOCAL, TEMPORARY_PREFIX, Files
from paritrace.store.checking import RankFacts
from paritrace.store.documents import canonical
from paritrace.store.inventory import Inventory, inventory_of
from paritrace.store.layout import RUN_MARK
from paritrace.store.records import RunMark
from paritrace.store.restoring import RESTORED_NAME, Restored, discard, restore_into
from paritrace.store.targets import Target

KEPT_NAME = "kept.json"
PREFIX = "paritrace-restored-"
HEAD_DIGITS = 16


class KeptFiles(Struct, frozen=True, forbid_unknown_fields=True):
    """kept.json of a restored store that stays: SHA-256 of every other file below it, by relative path."""

    files: dict[str, str]


def kept_restore(target: Target, below: Path, *, files: Files = LOCAL) -> tuple[Path, tuple[RankFacts, ...]]:
    """Return the folder of `below` with the store as it is now, and what is whole of each rank.

    Another state of the store has other head digests, and so another folder. One that is there already is hashed first.

    Raises:
        EvidenceError: Refused: `damaged_store`, `not_a_store`; `kept_restored_changed` of an earlier folder.
        HostError: Refused: `disk_full`, and what disk or target say; nothing is left behind.
    """
    place = below / _name(target)
    if files.exists(place) or not _made(target, place, files):
        _require_as_restored(place, files)
    return place, msgspec.json.decode(files.read(place / RESTORED_NAME), type=Restored).ranks


def _require_as_restored(place: Path, files: Files) -> None:
    found = _digests(place, files)
    stated = msgspec.json.decode(files.read(place / KEPT_NAME), type=KeptFiles) if KEPT_NAME in found else KeptFiles({})
    if {name: digest for name, digest in found.items() if name != KEPT_NAME} != stated.files:
        raise EvidenceError(
            f"{place} is not what was restored into it",
            code="kept_restored_changed",
            fix="remove the folder, and the store is restored anew; or leave --keep-restored out",
        )


def _made(target: Target, place: Path, files: Files) -> bool:
    """Restore beside the place and give it its name; False where another process was faster."""
    folder = place.parent / f"{TEMPORARY_PREFIX}restore-{secrets.token_hex(8)}"
    files.mkdir(folder)
    try:
        restore_into(target, folder, files=files)
        files.extend_scratch(folder / KEPT_NAME, (canonical(KeptFiles(_digests(folder, files))),))
        files.sync_all(folder)
        files.publish_folder(folder, place)
    except HostError as error:
        discard(folder)
        if error.code != "already_there":
            raise
        return False
    except BaseException:
        discard(folder)
        raise
    return True


def _digests(folder: Path, files: Files) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): sha256_of(files.iter_chunks(path)).sha256
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _name(target: Target) -> str:
    inventory = inventory_of(entry.name for entry in target.list(""))
    heads = [(str(key), str(names[-1])) for key, names in sorted(inventory.bundles.items())]
    receipts = [str(names[-1]) for _, names in sorted(inventory.receipts.items())]
    digest = sha256_hex(msgspec.json.encode((heads, receipts)))
    return f"{PREFIX}{_run_id(target, inventory)}-{digest[:HEAD_DIGITS]}"


def _run_id(target: Target, inventory: Inventory) -> str:
    """As the store's mark says; whether that is sound is for the restore to say."""
    if not inventory.has_run_mark:
        return "unknown"
    try:
        return msgspec.json.decode(b"".join(target.read(RUN_MARK)), type=RunMark).run_id
    except msgspec.DecodeError:
        return "unknown"
