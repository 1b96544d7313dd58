"""Rows for attachments: ids, relative paths, sizes and digests of what is registered (EV-15, EV-18, EV-22)."""

import os
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from paritrace.errors import HostError, RequestError
from paritrace.evidence.digests import sha256_hex, sha256_of, sha256_with_prefix
from paritrace.evidence.dumps import TENSOR_SUFFIX, TENSORS_FOLDER
from paritrace.evidence.gaps import Gap, RunGap
from paritrace.files import Files
from paritrace.runs.envelope import ATTACHMENTS_FOLDER, Attachment, AttachmentKind, Availability, Storage

JSON_DOCUMENT = "application/json"
JSON_LINES = "application/x-ndjson"
SAFETENSORS = "application/vnd.safetensors"
_OCTETS = "application/octet-stream"


class Reference(Struct, frozen=True):
    """A file or address to register; exactly one of `path` (relative to the run directory or absolute) and `url`."""

    kind: AttachmentKind
    title: str
    path: str | None = None
    url: str | None = None
    media_type: str = _OCTETS
    attachment_id: str | None = None
    metadata: dict[str, str] = {}


def whole_row(
    name: str, kind: AttachmentKind, path: Path, *, session_id: str, run_dir: Path, files: Files
) -> Attachment:
    """Return the row of a JSON document of the session that does not change any more."""
    row = live_row(name, kind, path, session_id=session_id, run_dir=run_dir, files=files)
    return replace(row, live=False, media_type=JSON_DOCUMENT)


def live_row(
    name: str, kind: AttachmentKind, path: Path, *, session_id: str, run_dir: Path, files: Files
) -> Attachment:
    """Return the row of a file that its owner still extends: what it holds now is the committed part."""
    _require_text(name, "the name of an attachment")
    found = sha256_of(files.iter_chunks(path))
    return Attachment(
        attachment_id=f"{kind.value}:{session_id}:{name}",
        title=name,
        kind=kind,
        storage=Storage.REFERENCE,
        path=_relative(path, run_dir),
        url=None,
        media_type=JSON_LINES,
        availability=Availability.AVAILABLE,
        num_bytes=found.num_bytes,
        sha256=found.sha256,
        source_session=session_id,
        live=True,
    )


def committed_row(row: Attachment, *, run_dir: Path, files: Files) -> tuple[Attachment, str]:
    """Return a live row with the file's present length and digest, and the digest of the part registered before."""
    before = 0 if isinstance(row.num_bytes, Gap) else row.num_bytes
    found = sha256_with_prefix(files.iter_chunks(run_dir / (row.path or "")), prefix_bytes=before)
    return replace(row, num_bytes=found.num_bytes, sha256=found.sha256), found.prefix_sha256


def sealed_row(row: Attachment, *, run_dir: Path, files: Files) -> tuple[Attachment, str]:
    """Return a live row as it stays: final size and digest; and the digest of the part registered before."""
    committed, prefix = committed_row(row, run_dir=run_dir, files=files)
    return replace(committed, live=False), prefix


def copy_row(kind: AttachmentKind, title: str, data: bytes, *, media_type: str) -> Attachment:
    """Return the row of bytes that the run keeps under their digest."""
    _require_text(title, "the title of an attachment")
    digest = sha256_hex(data)
    return Attachment(
        attachment_id=f"{kind.value}:{title}:{digest}",
        title=title,
        kind=kind,
        storage=Storage.COPY,
        path=f"{ATTACHMENTS_FOLDER}/{digest}",
        url=None,
        media_type=media_type,
        availability=Availability.AVAILABLE,
        num_bytes=len(data),
        sha256=digest,
        source_session=Gap(RunGap.SHARED),
    )


def tensor_row(sha256: str, num_bytes: int) -> Attachment:
    """Return the row of a tensor that the run keeps under the digest of its file (CA-9)."""
    return Attachment(
        attachment_id=f"{AttachmentKind.TENSOR.value}:{sha256}",
        title="a tensor kept whole",
        kind=AttachmentKind.TENSOR,
        storage=Storage.COPY,
        path=f"{TENSORS_FOLDER}/{sha256}{TENSOR_SUFFIX}",
        url=None,
        media_type=SAFETENSORS,
        availability=Availability.AVAILABLE,
        num_bytes=num_bytes,
        sha256=sha256,
        source_session=Gap(RunGap.SHARED),
    )


def reference_row(reference: Reference, *, session_id: str, run_dir: Path, files: Files) -> Attachment:
    """Return the row of a file or address outside the run.

    A file that cannot be read is registered `unavailable` with the reason and without a digest.

    Raises:
        RequestError: Refused, code `bad_attachment`: no or two places, an empty name, a url with credentials.
    """
    _require_text(reference.title, "the title of an attachment")
    if (reference.path is None) == (reference.url is None):
        raise _bad("an attachment has exactly one of path and url", "give one of them")
    if reference.url is not None:
        return _url_row(reference, reference.url, session_id)
    path = run_dir / _require_text(reference.path or "", "the path of an attachment")
    row = _row(reference, session_id, key=str(path.resolve()))
    row = replace(row, path=_relative(path, run_dir))
    try:
        found = sha256_of(files.iter_chunks(path))
    except HostError as error:
        why: Gap[RunGap] = Gap(RunGap.UNREADABLE, error.code)
        return replace(row, availability=Availability.UNAVAILABLE, num_bytes=why, sha256=why)
    return replace(row, num_bytes=found.num_bytes, sha256=found.sha256)


def _url_row(reference: Reference, url: str, session_id: str) -> Attachment:
    _require_text(url, "the url of an attachment")
    parts = urlsplit(url)
    if parts.username is not None or parts.password is not None:
        raise _bad("a url with credentials is not registered", "leave user name and password out of the url")
    if not parts.scheme or not (parts.netloc or parts.path):
        raise _bad(f"{url!r} is not a url", "give scheme://host/path, or a path")
    remote: Gap[RunGap] = Gap(RunGap.REMOTE)
    row = _row(reference, session_id, key=url)
    return replace(row, url=url, availability=Availability.NOT_COLLECTED, num_bytes=remote, sha256=remote)


def _row(reference: Reference, session_id: str, *, key: str) -> Attachment:
    made_id = f"{reference.kind.value}:{reference.title}:{sha256_hex(os.fsencode(key))[:12]}"
    given = made_id if reference.attachment_id is None else reference.attachment_id
    return Attachment(
        attachment_id=_require_text(given, "the id of an attachment"),
        title=reference.title,
        kind=reference.kind,
        storage=Storage.REFERENCE,
        path=None,
        url=None,
        media_type=reference.media_type,
        availability=Availability.AVAILABLE,
        num_bytes=Gap(RunGap.NOT_COLLECTED),
        sha256=Gap(RunGap.NOT_COLLECTED),
        source_session=session_id,
        metadata=dict(reference.metadata),
    )


def _relative(path: Path, run_dir: Path) -> str:
    """Return `path` relative to the run directory, both resolved, so that moving both keeps the reference right."""
    return Path(os.path.relpath(path.resolve(), run_dir.resolve())).as_posix()


def _require_text(text: str, what: str) -> str:
    if not text.strip():
        raise _bad(f"{what} is empty", "give it a name")
    return text


def _bad(message: str, fix: str) -> RequestError:
    return RequestError(message, code="bad_attachment", fix=fix)
