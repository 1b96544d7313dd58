"""Packing a run into one archive file, and unpacking one into a private folder."""

import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from paritrace.errors import EvidenceError, HostError
from paritrace.evidence import codec
from paritrace.files import LOCAL, Files
from paritrace.process.identity import Life, liveness
from paritrace.runs import archive
from paritrace.runs.archive import ArchiveStream, Inventory, Member, Source
from paritrace.runs.documents import Parsed, parse_envelope
from paritrace.runs.envelope import ENVELOPE_NAME, Envelope, SessionStatus
from paritrace.runs.record_lines import RECORDS_FOLDER
from paritrace.runs.scratch import Scratch
from paritrace.runs.stored import stored_folder

MAX_ENVELOPE_BYTES = 256 << 20  # ten thousand sessions with their surroundings are a tenth of this
SPACE_KEPT_FREE_BYTES = 64 << 20  # so that unpacking never fills a file system to its last byte


class Packed(Struct, frozen=True):
    """What went into an archive; `left_out`: names that are not plain files; `referenced`: attachments outside."""

    path: str
    run_id: str
    num_members: int
    num_bytes: int
    left_out: tuple[str, ...]
    referenced: tuple[str, ...]


def pack(run_dir: Path, output: Path, *, files: Files = LOCAL) -> Packed:
    """Write the run as one deterministic tar.zst file; one whose ranks are staged or published is put together first.

    Raises:
        EvidenceError: Refused: `not_a_run`, `run_is_running`, `changed_while_read`; of a store as `open_run` says.
        HostError: Refused: `already_there`, or what the disk says; nothing is left of the output.
    """
    private = stored_folder(run_dir, scratch=None, files=files)
    if private is None:
        return _packed(run_dir, output, linked=False, files=files)
    try:
        return _packed(private.run_folder, output, linked=True, files=files)
    finally:
        private.remove()


def _packed(run_dir: Path, output: Path, *, linked: bool, files: Files) -> Packed:
    data = files.read_if_present(run_dir / ENVELOPE_NAME)
    if data is None:
        raise EvidenceError(f"{run_dir} is not a run directory", code="not_a_run", fix="name a run directory")
    envelope = parse_envelope(data, name=str(run_dir / ENVELOPE_NAME)).envelope
    require_not_running(envelope, doing="pack")
    if files.exists(output):
        raise HostError(f"{output} exists", code="already_there", fix="choose another name for the archive")
    plain, left_out = _contents(run_dir, files, linked=linked)
    seen: list[Member] = []
    files.create(output, archive.compressed(_tar(plain, envelope, seen=seen, files=files)))
    return Packed(
        path=str(output),
        run_id=envelope.run_id,
        num_members=len(seen) - 1,
        num_bytes=files.size(output),
        left_out=tuple(left_out),
        referenced=tuple(row.attachment_id for row in envelope.attachments if row.path and row.path.startswith("..")),
    )


def unpack(path: Path, *, scratch: Path | None, files: Files = LOCAL) -> Scratch:
    """Unpack an archive into a private folder below `scratch` (default: the system's temporary folder).

    Every member is checked against the inventory.

    Raises:
        EvidenceError: Refused, code `bad_archive`; nothing is left behind.
        HostError: Refused, code `disk_full` before the space runs out.
    """
    private = Scratch(scratch)
    try:
        stream = ArchiveStream(files.iter_chunks(path), name=str(path))
        _unpack_members(stream, private.folder, files=files)
    except BaseException:
        private.remove()
        raise
    return private


def peek_envelope(path: Path, *, files: Files = LOCAL) -> Parsed:
    """Return the envelope of an archive, its first member, without reading the rest.

    Raises:
        EvidenceError: Refused, code `bad_archive`, and those of an envelope.
    """
    stream = ArchiveStream(files.iter_chunks(path), name=str(path))
    for name, num_bytes in stream.members():
        if name != ENVELOPE_NAME or num_bytes > MAX_ENVELOPE_BYTES:
            break
        return parse_envelope(b"".join(stream.body(num_bytes)), name=f"{path}:{ENVELOPE_NAME}")
    raise stream.bad(f"its first member is not {ENVELOPE_NAME}")


def require_not_running(envelope: Envelope, *, doing: str) -> None:
    """Refuse when a session's process may still write.

    Raises:
        EvidenceError: Refused, code `run_is_running`, unless every running session's process is provably gone.
    """
    for row in envelope.sessions:
        if row.status is not SessionStatus.RUNNING:
            continue
        found = liveness(row.process)
        if found.life is not Life.GONE:
            raise EvidenceError(
                f"cannot {doing} run {envelope.run_id}: session {row.session_id} may be running ({found.why})",
                code="run_is_running",
                fix="wait until it has ended; on another host, do this on the host where it ran",
            )


def _contents(run_dir: Path, files: Files, *, linked: bool) -> tuple[dict[str, Path], list[str]]:
    """Return the plain files of a run by relative path, sorted with the envelope first, and what else is there.

    `linked`: it was put together of its ranks' folders, whose entries are links of ours.
    """
    plain: dict[str, Path] = {}
    left_out: list[str] = []
    waiting = [("", run_dir)]
    if files.exists(run_dir / RECORDS_FOLDER) and files.is_folder(run_dir / RECORDS_FOLDER):
        waiting.append((f"{RECORDS_FOLDER}/", run_dir / RECORDS_FOLDER))  # the one hidden folder that is evidence
    while waiting:
        above, folder = waiting.pop()
        for entry in files.list(folder):
            name = f"{above}{entry.name}"
            path = entry.resolve() if linked and name.count("/") == 1 else entry
            if files.is_folder(path):
                waiting.append((f"{name}/", path))
            elif files.is_regular(path):
                plain[name] = path
            else:
                left_out.append(name)
    return dict(sorted(plain.items(), key=lambda item: (item[0] != ENVELOPE_NAME, item[0]))), sorted(left_out)


def _tar(plain: dict[str, Path], envelope: Envelope, *, seen: list[Member], files: Files) -> Iterator[bytes]:
    for name, path in plain.items():
        num_bytes = files.size(path)
        chunks = files.iter_chunks(path, length=num_bytes)
        yield from archive.member_bytes(Source(name, num_bytes, chunks), seen)
    inventory = codec.encode_document(
        Inventory(format=archive.FORMAT, version=archive.VERSION, run_id=envelope.run_id, members=tuple(seen))
    )
    yield from archive.member_bytes(Source(archive.INVENTORY_NAME, len(inventory), (inventory,)), seen)
    yield archive.end_bytes()


def _unpack_members(stream: ArchiveStream, folder: Path, *, files: Files) -> None:
    written: list[Member] = []
    inventory: bytes | None = None
    for name, num_bytes in stream.members():
        if inventory is not None:
            raise stream.bad("a member after its inventory")
        if name == archive.INVENTORY_NAME:
            if num_bytes > MAX_ENVELOPE_BYTES:
                raise stream.bad("its inventory is too large")
            inventory = b"".join(stream.body(num_bytes))
            continue
        _require_space(folder, num_bytes, files)
        digest = hashlib.sha256()
        files.write_scratch(folder / name, _hashed(stream.body(num_bytes), digest.update))
        written.append(Member(path=name, num_bytes=num_bytes, sha256=digest.hexdigest()))
    _require_inventory(stream, inventory, written)


def _hashed(chunks: Iterator[bytes], update: Callable[[bytes], object]) -> Iterator[bytes]:
    for chunk in chunks:
        update(chunk)
        yield chunk


def _require_inventory(stream: ArchiveStream, inventory: bytes | None, written: list[Member]) -> None:
    if inventory is None:
        raise stream.bad("it has no inventory, so it was not made by `paritrace runs pack`")
    listed = codec.decode_document(inventory, Inventory, name=archive.INVENTORY_NAME)
    if listed.format != archive.FORMAT or listed.version.split(".")[0] != archive.VERSION.split(".")[0]:
        raise stream.bad(f"its inventory has format {listed.format[:80]!r} version {listed.version[:40]!r}")
    if listed.members != tuple(written):
        wrong = sorted(member.path for member in set(listed.members) ^ set(written))
        raise stream.bad(f"member {wrong[0] if wrong else '?'} is not what the inventory says")


def _require_space(folder: Path, num_bytes: int, files: Files) -> None:
    free = files.free_bytes(folder)
    if num_bytes + SPACE_KEPT_FREE_BYTES > free:
        raise HostError(
            f"unpacking needs {num_bytes} more bytes in {os.fspath(folder.parent)}, {free} are free",
            code="disk_full",
            fix="name a scratch folder with more space (TMPDIR), or unpack the archive yourself with tar",
        )
