"""One text file of another program as a source of events: its attachment, its contexts, its lines, its one document."""

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from paritrace.errors import EvidenceError
from paritrace.evidence.plain_json import Parsed, parse
from paritrace.files import LOCAL
from paritrace.inference.context import ClockKind, CollectionMode, Context, ContextFacts, Provenance
from paritrace.inference.importing import Asked, attachment_id_of
from paritrace.inference.records import Loss
from paritrace.inference.vocabulary import LossReason
from paritrace.runs.attaching import Reference
from paritrace.runs.envelope import AttachmentKind

MOST_LINE_BYTES = 4 << 20  # a longer line is passed over and counted: memory stays bounded whatever the file
MOST_DOCUMENT_BYTES = 256 << 20  # a document is parsed in memory, at about four times its size
HEAD_BYTES = 65_536  # what is looked at to tell whose file it is
FILE_CLOCK = "file"


class Line(Struct, frozen=True):
    """One line without its end; `data` None where it is longer than MOST_LINE_BYTES. `whole`: it has its newline."""

    number: int
    offset: int
    data: bytes | None
    whole: bool


class TextSource:
    """A file and what it was asked for; nothing is read before it is asked."""

    def __init__(self, asked: Asked, *, reader: str, path: Path | None = None) -> None:
        self.path = asked.path if path is None else path
        self.reader = reader
        self.scope = asked.scope
        self.attachment_id = attachment_id_of(reader, self.path)

    def reference(self, media_type: str) -> Reference:
        """The file as it is registered, whether or not it is understood."""
        return Reference(
            kind=AttachmentKind.OTHER,
            title=self.path.name,
            path=str(self.path.resolve()),
            media_type=media_type,
            attachment_id=self.attachment_id,
            metadata={"reader": self.reader},
        )

    def context(
        self,
        *,
        clock: ClockKind = ClockKind.WALL,
        clock_domain: str | None = None,
        provenance: Provenance = Provenance.REPORTED,
        engine: str | None = None,
        pid: int | None = None,
    ) -> Context:
        """A context of this file. Without `clock_domain` its clock is one that no other source shares."""
        return Context(
            ContextFacts(
                run_id=self.scope.run_id,
                session_id=self.scope.session_id,
                producer_id=self.attachment_id,
                source=self.reader,
                clock_domain=clock_domain or f"{FILE_CLOCK}/{self.attachment_id}",
                clock_kind=clock,
                collection_mode=CollectionMode.IMPORTED,
                provenance=provenance,
                engine=engine,
                pid=pid,
            )
        )

    def event_id(self, *place: object) -> str:
        """An id of the place in the file: the same file gives the same ids."""
        return ":".join([self.attachment_id, *(str(part) for part in place)])

    def loss(self, context: Context, what: str, reason: LossReason, *, count: int | None) -> Loss:
        """What this file lost, or does not say."""
        return Loss(
            context=context,
            event_id=self.event_id("loss", what, reason.value),
            source=self.attachment_id,
            what=what,
            reason=reason,
            count=count,
        )

    def document(self) -> Parsed:
        """The file's one JSON document.

        Raises:
            EvidenceError: Refused, `too_large_to_import`.
            HostError: it cannot be read.
        """
        data = b"".join(LOCAL.iter_chunks(self.path, length=MOST_DOCUMENT_BYTES + 1))
        if len(data) > MOST_DOCUMENT_BYTES:
            raise EvidenceError(
                f"{self.path} is larger than {MOST_DOCUMENT_BYTES >> 20} MiB, the most that is read of one document",
                code="too_large_to_import",
                fix="split it, or write it as JSON Lines, which are read one by one",
            )
        return parse(data, path=self.path.name, within_64_bits=True)

    def lines(self) -> Iterator[Line]:
        """The lines of the file, in memory of one line."""
        return lines_of(LOCAL.iter_chunks(self.path))


def lines_of(chunks: Iterator[bytes]) -> Iterator[Line]:
    """Yields the lines of a stream of bytes; what is longer than MOST_LINE_BYTES is passed over, with its place."""
    number, offset, held, size = 1, 0, b"", 0
    for chunk in chunks:
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            length = size + len(piece)
            yield Line(number, offset, held + piece if length <= MOST_LINE_BYTES else None, whole=True)
            number, offset, held, size = number + 1, offset + length + 1, b"", 0
        size += len(rest)
        held = held + rest if size <= MOST_LINE_BYTES else b""
    if size:
        yield Line(number, offset, held if size <= MOST_LINE_BYTES else None, whole=False)


def head_of(path: Path) -> bytes:
    """The first bytes of a file, for telling whose it is."""
    return b"".join(LOCAL.iter_chunks(path, length=HEAD_BYTES))
