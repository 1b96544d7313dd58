"""Building the next bundle whole in staging, and promising it in the checkpoint (ST-6, ST-8a)."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import xxhash
from msgspec import Struct
from msgspec.structs import replace

from paritrace.errors import EvidenceError, HostError
from paritrace.files import Files
from paritrace.store import cursor, records
from paritrace.store.bundle_writing import compressed, tar_of
from paritrace.store.checkpoint import Changes, Checkpoint, Pending, with_pending
from paritrace.store.choosing import Choice
from paritrace.store.layout import COMPRESSED, MAX_SEQUENCE, PLAIN, BundleName, StagedRank
from paritrace.store.records import Manifest, Remark, Segment
from paritrace.store.sources import changed_while_read, is_gone

_PENDING_BUNDLE = "bundle"


class Built(Struct, frozen=True):
    """An object that lies whole and durable in staging."""

    file: str
    num_bytes: int
    sha256: str
    checksum: str

    def promised(self, name: str, then: Changes) -> Pending:
        """Return the promise to publish it under a name, with what the checkpoint becomes by that."""
        return Pending(
            name=name, file=self.file, num_bytes=self.num_bytes, sha256=self.sha256, checksum=self.checksum, then=then
        )


def build(place: StagedRank, checkpoint: Checkpoint, choice: Choice, *, final: bool, files: Files) -> Checkpoint:
    """Write the bundle of a choice into staging and return the checkpoint that promises it, which is saved.

    Raises:
        EvidenceError: Refused, code `changed_while_read`: a source is not what was hashed; nothing is promised.
        HostError: Refused, what the disk says.
    """
    manifest = _manifest(place, checkpoint, choice, final=final)
    told = zip(choice.segments, choice.checksums, strict=True)
    tar = tar_of(manifest, (_source(place.originals, segment, checksum, files) for segment, checksum in told))
    built = write_pending(place, _PENDING_BUNDLE, compressed(tar) if choice.pays else tar, files=files)
    suffix = COMPRESSED if choice.pays else PLAIN
    then = replace(
        choice.then,
        unsaid=0,
        bundles=manifest.sequence,
        head=built.sha256,
        payload_bytes=checkpoint.progress.payload_bytes + sum(segment.length for segment in manifest.segments),
    )
    name = str(BundleName(place.key, manifest.sequence, built.sha256, suffix))
    pending = built.promised(name, then)
    return promise(place, checkpoint, pending, files=files)


def promise(place: StagedRank, checkpoint: Checkpoint, pending: Pending, *, files: Files) -> Checkpoint:
    """Save and return the checkpoint that names what is published next, whatever happens."""
    promised = with_pending(checkpoint, pending)
    cursor.save(place, promised, files=files)
    return promised


def write_pending(place: StagedRank, file: str, chunks: Iterator[bytes], *, files: Files) -> Built:
    """Write an object into the folder of pending ones: forced to disk, its name last."""
    digest, checksum = (
        hashlib.sha256(),
        xxhash.xxh3_128(),
    )  # here, not aside: a program is being trained on this machine
    with files.replacing(place.pending / file) as replacement:
        for chunk in chunks:
            digest.update(chunk)
            checksum.update(chunk)
            replacement.write(chunk)
    return Built(file, replacement.size, digest.hexdigest(), checksum.hexdigest())


def _manifest(place: StagedRank, checkpoint: Checkpoint, choice: Choice, *, final: bool) -> Manifest:
    sequence = checkpoint.progress.bundles + 1
    if sequence > MAX_SEQUENCE:
        raise EvidenceError(
            f"{place.key} has published {MAX_SEQUENCE} bundles",
            code="too_many_bundles",
            fix="go on under a new run id with a new target",
        )
    return Manifest(
        format=records.BUNDLE_FORMAT,
        version=records.VERSION,
        run_id=place.run_id,
        node_id=place.node_id,
        rank=place.rank,
        incarnation=checkpoint.incarnation,
        sequence=sequence,
        previous=checkpoint.progress.head,
        segments=choice.segments,
        remarks=(*unsaid(checkpoint), *choice.remarks),
        waiting_bytes=choice.waiting_bytes,
        overdue_bytes=choice.overdue_bytes,
        final=final and not choice.waiting_bytes,
    )


def unsaid(checkpoint: Checkpoint) -> tuple[Remark, ...]:
    """Return the remarks that are in no bundle yet."""
    progress = checkpoint.progress
    return progress.remarks[len(progress.remarks) - progress.unsaid :]


def _source(folder: Path, segment: Segment, checksum: str, files: Files) -> Iterator[bytes]:
    """Yield a segment's bytes anew; ends in an error when they are not those that were hashed."""
    found = xxhash.xxh3_128()
    try:
        with files.opened(folder / segment.path) as opened:
            for chunk in opened.chunks(segment.offset, segment.length):
                found.update(chunk)
                yield chunk
    except HostError as error:
        if is_gone(error):
            raise changed_while_read(segment.path) from error
        raise
    if found.hexdigest() != checksum:
        raise changed_while_read(segment.path)
