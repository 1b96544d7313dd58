"""The small JSON documents of a store: canonical bytes out, strictly checked records in (ST-8)."""

from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from paritrace.errors import EvidenceError
from paritrace.evidence import codec
from paritrace.evidence.versions import Reading, reading_of
from paritrace.files import Files
from paritrace.store import records

MAX_DOCUMENT_BYTES = (
    256 << 20
)  # a manifest of ten thousand names of 4 KiB is 50 MB, a checkpoint of a million files 200

Document = TypeVar("Document", bound=Struct)


def canonical(document: Struct) -> bytes:
    """Return the one spelling of a document: sorted keys, no spaces, a last newline."""
    return msgspec.json.encode(document, order="sorted") + b"\n"


def read_canonical(data: bytes, kind: type[Document], *, format_name: str, name: str) -> Document:
    """Return the document of bytes that are exactly `canonical` of it.

    Raises:
        EvidenceError: Refused: `invalid_document`, `newer_version`, `foreign_run` for another format.
    """
    _require_readable(data, format_name, name)
    document = _quickly(data, kind)
    if document is None:
        document = codec.decode_document(data, kind, name=name)
    if canonical(document) != data:
        raise EvidenceError(
            f"{name} is not in canonical form",
            code="invalid_document",
            fix="it was written or changed by another program: restore it from a copy; nothing was changed",
        )
    return document


def staged_document(path: Path, kind: type[Document], *, format_name: str, files: Files) -> Document | None:
    """Return a document of ours that lies in staging, None where there is none.

    Raises:
        EvidenceError, HostError: Refused, as `read_canonical` and the disk say.
    """
    data = files.read_if_present(path)
    return None if data is None else read_canonical(data, kind, format_name=format_name, name=str(path))


def _quickly(data: bytes, kind: type[Document]) -> Document | None:
    """Return a document without looking for double keys and the like: none of it passes for canonical."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None


def limited(chunks: Iterable[bytes], *, name: str) -> bytes:
    """Return the bytes of a small object.

    Raises:
        EvidenceError: Refused, code `invalid_document`: larger than any document of ours.
    """
    data = bytearray()
    for chunk in chunks:
        data += chunk
        if len(data) > MAX_DOCUMENT_BYTES:
            raise EvidenceError(
                f"{name} is larger than any document of ours",
                code="invalid_document",
                fix="it is not ours: remove it from the store if it is yours to remove",
            )
    return bytes(data)


def _require_readable(data: bytes, format_name: str, name: str) -> None:
    said = codec.declared(data)
    if said is None or said.format != format_name:
        raise EvidenceError(
            f"{name} does not say that it is a {format_name}",
            code="invalid_document",
            fix="the file is damaged or not one of ours: restore it from a copy; nothing was changed",
        )
    if reading_of(said.version, ours=records.VERSION) is not Reading.SAME:
        raise EvidenceError(
            f"{name} has version {said.version[:40]!r}; this paritrace reads {records.VERSION}",
            code="newer_version",
            fix="read it with the paritrace that wrote it, or a later one",
        )
