"""Publishing what the checkpoint promises: put, advance, drop, in this order (ST-6, ST-8a)."""

from contextlib import suppress

from paritrace.errors import EvidenceError, HostError
from paritrace.files import Files
from paritrace.store import cursor
from paritrace.store.checkpoint import Checkpoint, published
from paritrace.store.layout import StagedRank
from paritrace.store.targets import Put, Target
from paritrace.store.throttle import Throttle


def publish(
    place: StagedRank, checkpoint: Checkpoint, target: Target, *, throttle: Throttle, files: Files
) -> tuple[Checkpoint, Put]:
    """Publish the pending object and return the checkpoint after it, saved.

    Whatever fails leaves the pending object for the next try, byte for byte.

    Raises:
        EvidenceError: Refused: `pending_lost`, `target_conflict`, `staged_bytes_changed`.
        HostError: as `Target.put_if_absent` says, and what the disk says of the checkpoint.
    """
    pending = checkpoint.pending
    if pending is None:
        return checkpoint, Put.ALREADY_THERE
    path = place.pending / pending.file
    try:
        how = target.put_if_absent(
            pending.name, path, sha256=pending.sha256, checksum=pending.checksum, throttle=throttle
        )
    except HostError as error:
        if error.code == "not_found" and not files.exists(path):
            raise EvidenceError(
                f"{path} is gone, which the checkpoint promises to publish as {pending.name}",
                code="pending_lost",
                fix="put the staging directory back as it was, or go on under a new run id with a new target",
            ) from error
        raise
    after = published(checkpoint, pending)
    cursor.save(place, after, files=files)
    with suppress(HostError):  # the next sync removes it
        files.remove(path)
    return after, how


def drop_leftovers(place: StagedRank, checkpoint: Checkpoint, *, files: Files) -> None:
    """Remove what a killed sync left in the folder of pending objects, all but the one that is promised."""
    if not files.exists(place.pending):
        return
    kept = None if checkpoint.pending is None else checkpoint.pending.file
    for path in files.list_all(place.pending):
        if path.name != kept:
            files.remove(path)
    for path in files.list_all(place.state):
        if path.name.endswith(".tmp"):
            files.remove(path)
