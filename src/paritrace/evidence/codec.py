"""The one place where bytes become records and records become bytes (EV-1, EV-2)."""

from collections.abc import Iterable
from math import isfinite
from typing import TypeVar, cast

import msgspec
from msgspec import Struct

from paritrace.errors import EvidenceError, InternalError
from paritrace.evidence.calls import Detail, Mark, Moments, Row
from paritrace.evidence.faults import Fault, FaultKind, bad_syntax, breach_of, invalid, may_hold_long_integer
from paritrace.evidence.leniency import prune

Record = Row | Mark
Document = TypeVar("Document", bound=Struct)

ROW_START, OBJECT_START = 0x5B, 0x7B  # the first byte of a row and of a definition or mark
BOM = b"\xef\xbb\xbf"

_encoder = msgspec.json.Encoder()
_rows: msgspec.json.Decoder[Row] = msgspec.json.Decoder(Row)
_marks: msgspec.json.Decoder[Mark] = msgspec.json.Decoder(Mark)
_plain = msgspec.json.Decoder()
_ROW_TAGS = frozenset(member.__struct_config__.tag for member in Row.__args__)
_MARK_TAGS = frozenset(member.__struct_config__.tag for member in Mark.__args__)

decode_row = _rows.decode  # fast paths of the journal reader: raise msgspec's errors, see `decode_line`
decode_mark = _marks.decode


class Unknown(Struct, frozen=True):
    """A whole record of a kind that only a higher minor version knows."""

    tag: str


class Declared(Struct, frozen=True):
    """What a document says of itself, whatever else it holds."""

    format: str = ""
    version: str = ""


class Lenient(Struct, frozen=True):
    record: Record | Unknown
    unknown_fields: int


def encode_row(row: Row) -> bytes:
    """Return a row as one line.

    Raises:
        InternalError: a number is not finite (writers give `None` and say why) or does not fit 64 bits.
    """
    if isinstance(row, Detail) and row.moments is not None:
        _require_finite(row.moments)
    return _line(row)


def encode_mark(mark: Mark) -> bytes:
    """Return a definition or mark as one line; half surrogates (of undecodable paths) are spelled `\\udcXX`."""
    return _line(mark)


def encode_lines(records: Iterable[Record]) -> bytes:
    """Return records as lines, as `encode_row` and `encode_mark` do, at the speed of one call.

    Raises:
        InternalError: as `encode_row` says.
    """
    batch = records if isinstance(records, list) else list(records)
    if Detail in set(map(type, batch)):  # most batches hold none, and looking at each record took a tenth of the time
        for record in batch:
            if type(record) is Detail and record.moments is not None:
                _require_finite(record.moments)
    try:
        return _encoder.encode_lines(batch)
    except UnicodeEncodeError:
        return b"".join(map(_line, batch))


def encode_document(document: Struct) -> bytes:
    """Return a document as indented JSON with sorted keys and a last newline (EV-23)."""
    return msgspec.json.format(msgspec.json.encode(speakable(document), order="sorted"), indent=2) + b"\n"


def is_canonical(line: bytes, record: Record) -> bool:
    """Say whether `line` is exactly what our writers write for `record`: then it cannot hide a duplicate key."""
    return _encoder.encode(record) == line


def decode_line(line: bytes) -> Record | Fault:
    """Return the record of one line without its newline, checked strictly, or what is wrong with it.

    Never raises: a journal with a bad line reads on (EV-8).
    """
    record = _quickly(line)
    if record is not None:
        return record
    breach = breach_of(line)
    if breach is not None:
        return breach
    try:
        return _rows.decode(line) if line.lstrip()[:1] == b"[" else _marks.decode(line)
    except msgspec.ValidationError as error:
        return invalid(line, str(error))
    except (msgspec.DecodeError, RecursionError) as error:
        return bad_syntax(line, str(error))


def _quickly(line: bytes) -> Record | None:
    """Return the record of a line that is right at a glance: a row without objects, or a canonical line."""
    if may_hold_long_integer(line):
        return None
    try:
        if line[:1] == b"[":
            row = _rows.decode(line)
            return row if OBJECT_START not in line or is_canonical(line, row) else None
        mark = _marks.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return None
    return mark if is_canonical(line, mark) else None


def decode_lenient(line: bytes) -> Lenient | Fault:
    """Like `decode_line` for a journal of a higher minor version: unknown fields are left out and counted."""
    strict = decode_line(line)
    if not isinstance(strict, Fault):
        return Lenient(strict, 0)
    if strict.kind is not FaultKind.INVALID:
        return strict
    plain = _plain.decode(line)
    is_row = isinstance(plain, list)
    tag = _tag(plain)
    if tag is not None and tag not in (_ROW_TAGS if is_row else _MARK_TAGS):
        return Lenient(Unknown(tag), 0)
    pruned = prune(plain, Row if is_row else Mark)
    try:
        return Lenient(msgspec.convert(pruned.value, Row if is_row else Mark), pruned.unknown_fields)
    except msgspec.ValidationError as error:
        return Fault(FaultKind.INVALID, 0, str(error))


def _tag(plain: object) -> str | None:
    """Return what a parsed line says it is: the first element of a row, the `type` of an object."""
    if isinstance(plain, dict):
        tag = cast("dict[str, object]", plain).get("type")
    elif isinstance(plain, list) and plain:
        tag = cast("list[object]", plain)[0]
    else:
        tag = None
    return tag if isinstance(tag, str) else None


def decode_document(data: bytes, kind: type[Document], *, name: str) -> Document:
    """Return the document of a small file, checked strictly; unknown fields are refused.

    Raises:
        EvidenceError: Refused, code `invalid_document`, with line and byte offset.
    """
    data = data.removeprefix(BOM)
    breach = breach_of(data)
    if breach is None:
        try:
            return msgspec.json.decode(data, type=kind)
        except msgspec.ValidationError as error:
            breach = invalid(data, str(error))
        except (msgspec.DecodeError, RecursionError) as error:
            breach = bad_syntax(data, str(error))
    line = data.count(b"\n", 0, breach.offset) + 1
    raise EvidenceError(
        f"{name}: line {line}, byte {breach.offset}: {breach.detail}",
        code="invalid_document",
        fix="the file is damaged or not one of ours: restore it from a copy; nothing was changed",
    )


def declared(data: bytes) -> Declared | None:
    """Return format and version that a JSON object names, or None where it is none or names none."""
    try:
        found = msgspec.json.decode(data, type=Declared)
    except (msgspec.DecodeError, RecursionError):
        return None
    return found if found.format else None


def decode_document_lenient(data: bytes, kind: type[Document], *, name: str) -> tuple[Document, int]:
    """Return the document of a higher minor version and how many of its fields were left out."""
    _ = decode_document(data, Declared, name=name)
    pruned = prune(_plain.decode(data.removeprefix(BOM)), kind)
    try:
        return msgspec.convert(pruned.value, kind), pruned.unknown_fields
    except msgspec.ValidationError as error:
        raise EvidenceError(
            f"{name}: {error}", code="invalid_document", fix="read it with the paritrace that wrote it"
        ) from error


def _line(record: Record) -> bytes:
    try:
        return _encoder.encode(record) + b"\n"
    except UnicodeEncodeError:
        return _encoder.encode(speakable(record)) + b"\n"


def speakable(record: Struct) -> object:
    """Return `record` as plain values whose strings can be written as UTF-8: a half surrogate is spelt `\\udcXX`."""
    return _without_halves(msgspec.to_builtins(record))


def _without_halves(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        items = cast("dict[object, object]", value).items()
        return {_without_halves(key): _without_halves(item) for key, item in items}
    if isinstance(value, list | tuple):
        return [_without_halves(item) for item in cast("list[object]", value)]
    return value


def _require_finite(moments: Moments) -> None:
    for value in (moments.min, moments.max, moments.sum, moments.sum_squares, moments.abs_max):
        if value is not None and not isfinite(value):
            raise InternalError(
                f"a moment is {value}, which JSON cannot hold", code="not_finite", fix="report this with the tensor"
            )
