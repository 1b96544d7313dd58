"""Lines of an inference artifact as events, and events as lines: strict, contexts defined once (IN-1, IN-2, EV-2)."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from paritrace.errors import EvidenceError
from paritrace.evidence.faults import bad_syntax, breach_of, invalid
from paritrace.inference.context import Context, ContextDefinition
from paritrace.inference.identities import encode_context
from paritrace.inference.records import AnyEvent, Event

NEWLINE = b"\n"
MAX_LINE_BYTES = 64 << 20  # a line is some hundred bytes; one without an end must not fill memory
_DETAIL_CHARACTERS = 300
_encoder = msgspec.json.Encoder(enc_hook=encode_context, order="sorted")


class Line(NamedTuple):
    """One line of a file: its number from 1, its first byte, its bytes without newline, and what it says.

    `found` is None where `fault` says what is wrong; `ended`: a newline follows.
    """

    number: int
    offset: int
    data: bytes
    found: AnyEvent | ContextDefinition | None
    fault: str
    ended: bool


class LineDecoder:
    """Decodes the lines of one file in order, so that every context is defined before it is named."""

    def __init__(self) -> None:
        self.contexts: dict[str, Context] = {}
        self._decoder: msgspec.json.Decoder[AnyEvent | ContextDefinition] = msgspec.json.Decoder(
            AnyEvent | ContextDefinition, dec_hook=self._named
        )

    def decode(self, data: bytes) -> AnyEvent | ContextDefinition:
        """Return what a line says.

        Raises:
            ValueError: it is no line of this format; the message says why and where.
        """
        try:
            found = self._decoder.decode(data)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise ValueError(_why(data, error)) from None
        if isinstance(found, ContextDefinition):
            self._define(found)
        if _encoder.encode(found) != data:  # ours is written so; anything else may hide what a parser lets pass
            breach = breach_of(data)
            if breach is not None:
                raise ValueError(f"byte {breach.offset}: {breach.detail}")
        return found

    def _named(self, _kind: type, value: Any) -> Context:
        if not isinstance(value, str):
            raise ValueError("a context is named by its id, a text")
        found = self.contexts.get(value)
        if found is None:
            raise ValueError(f"context {value[:80]!r} is not defined on a line before this one")
        return found

    def _define(self, definition: ContextDefinition) -> None:
        known = self.contexts.setdefault(definition.context_id, Context(definition.context))
        if known.facts != definition.context:
            raise ValueError(f"context {definition.context_id[:80]!r} is defined twice, in two ways")


def encode_definition(context: Context) -> bytes:
    """Return the line that defines a context, with its newline."""
    return _encoder.encode(ContextDefinition(context_id=context.id, context=context.facts)) + NEWLINE


def scan(chunks: Iterable[bytes], *, decoder: LineDecoder, lost: Iterable[tuple[int, int]] = ()) -> Iterator[Line]:
    """Yield every line of a file that is not blank, good or bad, in memory of one line.

    Args:
        chunks: the bytes of the whole file.
        lost: `(offset, length)` of bytes that the file's index gives up: lines that begin there are passed over.
    """
    gaps = sorted(lost)
    for number, offset, data, ended in split(chunks):
        if data.strip() and not any(start <= offset < start + length for start, length in gaps):
            yield _line(number, offset, data, ended, decoder)


def events(lines: Iterable[Line], *, name: str) -> Iterator[AnyEvent]:
    """Yield the events of lines, context definitions left out.

    Raises:
        EvidenceError: Refused: `invalid_line` with its number, `torn_tail` where the last line has no end.
    """
    for line in lines:
        if line.found is None:
            raise bad_line(line, name=name)
        if isinstance(line.found, Event):
            yield line.found


def bad_line(line: Line, *, name: str) -> EvidenceError:
    """Return the error of a line that cannot be read."""
    if not line.ended:
        return EvidenceError(
            f"{name}: line {line.number}: the file ends inside a record, at byte {line.offset + len(line.data)}"
            f" ({len(line.data)} bytes from byte {line.offset} on)",
            code="torn_tail",
            fix="its writer was killed: `paritrace infer recover RUN` keeps those bytes and notes the loss",
        )
    return EvidenceError(
        f"{name}: line {line.number}: {line.fault}",
        code="invalid_line",
        fix="restore the file from a copy, or `paritrace infer recover RUN` to go on without that line",
    )


def _line(number: int, offset: int, data: bytes, ended: bool, decoder: LineDecoder) -> Line:
    try:
        return Line(number, offset, data, decoder.decode(data), "", ended)
    except ValueError as error:
        return Line(number, offset, data, None, str(error)[:_DETAIL_CHARACTERS], ended)


def split(chunks: Iterable[bytes]) -> Iterator[tuple[int, int, bytes, bool]]:
    """Yield each line's number from 1, its first byte, its bytes, and whether it ends; only `\\n` ends one (EV-2)."""
    number, offset, held = 1, 0, b""
    for chunk in chunks:
        *whole, held = (held + chunk).split(NEWLINE) if NEWLINE in chunk else (held + chunk,)
        for data in whole:
            yield number, offset, data, True
            number, offset = number + 1, offset + len(data) + 1
        if len(held) > MAX_LINE_BYTES:
            raise EvidenceError(
                f"line {number} is longer than {MAX_LINE_BYTES >> 20} MiB",
                code="invalid_line",
                fix="the file is damaged or not one of ours: restore it from a copy",
            )
    if held:
        yield number, offset, held, False


def _why(data: bytes, error: Exception) -> str:
    breach = breach_of(data)
    if breach is None and isinstance(error, msgspec.ValidationError):
        breach = invalid(data, str(error))
    elif breach is None:
        breach = bad_syntax(data, str(error))
    return f"byte {breach.offset}: {breach.detail}" if breach.offset else breach.detail
