"""Reading and writing run.json and receipt.json: format and version first, then every field (EV-1, EV-23)."""

from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from paritrace.errors import EvidenceError
from paritrace.evidence import codec
from paritrace.evidence.versions import Reading, reading_of
from paritrace.files import Files
from paritrace.runs import envelope as records
from paritrace.runs.envelope import ENVELOPE_NAME, RECEIPT_NAME, Envelope, ReceiptDocument

Document = TypeVar("Document", bound=Struct)


class Parsed(Struct, frozen=True):
    envelope: Envelope
    unknown_fields: int  # of a higher minor version


def parse_envelope(data: bytes, *, name: str) -> Parsed:
    """Return the envelope in the bytes of a run.json.

    Raises:
        EvidenceError: Refused, code `invalid_document`, `foreign_run` or `newer_version`.
    """
    document, unknown = _parse(data, Envelope, name=name, expected=(records.FORMAT, records.VERSION))
    return Parsed(document, unknown)


def parse_receipt(data: bytes, *, name: str) -> ReceiptDocument:
    """Return the receipt in the bytes of a receipt.json; errors as for an envelope."""
    expected = (records.RECEIPT_FORMAT, records.RECEIPT_VERSION)
    return _parse(data, ReceiptDocument, name=name, expected=expected)[0]


def read_envelope(run_dir: Path, *, files: Files) -> Envelope | None:
    """Return the envelope of a run directory, or None where there is no run.json."""
    path = run_dir / ENVELOPE_NAME
    data = files.read_if_present(path)
    return None if data is None else parse_envelope(data, name=str(path)).envelope


def read_own_envelope(run_dir: Path, *, files: Files) -> Envelope | None:
    """Return an envelope that this build may write back: one of a higher minor version would lose fields.

    Raises:
        EvidenceError: Refused, code `newer_version` besides those of `parse_envelope`.
    """
    path = run_dir / ENVELOPE_NAME
    data = files.read_if_present(path)
    if data is None:
        return None
    parsed = parse_envelope(data, name=str(path))
    if parsed.envelope.version != records.VERSION and parsed.unknown_fields:
        raise _newer(str(path), parsed.envelope.version, records.VERSION)
    return parsed.envelope


def read_receipt(session_dir: Path, *, files: Files) -> ReceiptDocument | None:
    """Return the receipt of a session's folder, or None where there is none."""
    path = session_dir / RECEIPT_NAME
    data = files.read_if_present(path)
    return None if data is None else parse_receipt(data, name=str(path))


def write_document(path: Path, document: Struct, *, files: Files) -> None:
    """Write a document by replacement (EV-10)."""
    files.replace(path, codec.encode_document(document))


def _parse(data: bytes, kind: type[Document], *, name: str, expected: tuple[str, str]) -> tuple[Document, int]:
    ours, version = expected
    said = codec.declared(data.removeprefix(codec.BOM))
    if said is None:
        return codec.decode_document(data, kind, name=name), 0
    match reading_of(said.version, ours=version) if said.format == ours else Reading.FOREIGN:
        case Reading.SAME:
            return codec.decode_document(data, kind, name=name), 0
        case Reading.NEWER_MINOR:
            return codec.decode_document_lenient(data, kind, name=name)
        case Reading.OTHER_MAJOR:
            raise _newer(name, said.version, version)
        case Reading.FOREIGN:
            raise EvidenceError(
                f"{name} says format {said.format[:80]!r} version {said.version[:40]!r}, not {ours} {version}",
                code="foreign_run",
                fix="name a run directory written by paritrace",
            )


def _newer(name: str, theirs: str, ours: str) -> EvidenceError:
    return EvidenceError(
        f"{name} has version {theirs[:40]!r}; this paritrace reads {ours} and writes nothing else",
        code="newer_version",
        fix="use the paritrace that wrote it, or a later one",
    )
