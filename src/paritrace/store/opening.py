"""Restoring whatever a person names: a store on any target, or an old-style archive (ST-11, ST-12)."""

import secrets
from pathlib import Path

from paritrace.files import LOCAL, TEMPORARY_PREFIX, Files
from paritrace.store.legacy import Extracted, archive_at, extract
from paritrace.store.recognising import is_store
from paritrace.store.restoring import Restored, discard, require_absent, restore
from paritrace.store.targets import open_target


def restore_from(
    source: str, destination: Path, *, partial: bool = False, files: Files = LOCAL
) -> Restored | Extracted:
    """Restore a store or an old-style archive into a directory that does not exist yet.

    Raises:
        EvidenceError: Refused: `damaged_store`, `not_a_store`, `bad_archive`.
        HostError: Refused: `already_there`, `disk_full`, and what disk or target say.
    """
    archive = old_archive(source, files=files)
    if archive is None:
        return restore(open_target(source), destination, partial=partial, files=files)
    require_absent(destination, files)
    files.mkdir(destination.parent)
    folder = destination.parent / f"{TEMPORARY_PREFIX}restore-{secrets.token_hex(8)}"
    files.mkdir(folder)
    try:
        extracted = extract(archive, folder, files=files)
        files.sync_all(folder)
        files.publish_folder(folder, destination)
    except BaseException:
        discard(folder)
        raise
    return extracted


def old_archive(source: str, *, files: Files = LOCAL) -> Path | None:
    """Return the archive that a person named, None where the source is a store, an address or nothing."""
    if "://" in source:
        return None
    path = Path(source).expanduser()
    return None if is_store(path, files=files) else archive_at(path, files=files)
