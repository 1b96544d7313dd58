"""JSON documents of results: the same result is always the same bytes (SU-7)."""

from typing import TypeVar

import msgspec
from msgspec import Struct

from paritrace.compare.checks_result import Checked
from paritrace.compare.result import Comparison
from paritrace.errors import EvidenceError
from paritrace.evidence.codec import speakable

Document = TypeVar("Document", bound=Struct)


def encoded(document: Struct, /) -> bytes:
    """Returns a record as indented JSON: fields in their order, keys of maps sorted, one newline at the end.

    A figure that is not a finite number is `null`, as JSON knows none; a name that is no text is spelt with escapes.
    """
    try:
        data = msgspec.json.encode(document, order="deterministic")
    except UnicodeEncodeError:
        data = msgspec.json.encode(speakable(document), order="deterministic")
    return msgspec.json.format(data, indent=2) + b"\n"


def comparison_document(comparison: Comparison, /) -> bytes:
    """Returns the document of `compare --json` and `comparison.json` (surface.md, stable keys)."""
    return encoded(comparison)


def checked_document(checked: Checked, /) -> bytes:
    """Returns the document of `check --json`."""
    return encoded(checked)


def decoded(data: bytes, kind: type[Document], /, *, name: str) -> Document:
    """Returns the record that a document of ours holds.

    Raises:
        EvidenceError: Refused, `damaged_result`: not JSON of this kind, or of another version.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:  # the last: nested too deeply
        raise EvidenceError(
            f"{name} is not a result that this version reads: {error}",
            code="damaged_result",
            fix="run paritrace compare again; results can always be made anew from their runs",
        ) from error
