"""What an artifact holds already: its identities from the file beside it, made anew where that does not fit (EV-9)."""

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from paritrace.evidence.digests import sha256_hex
from paritrace.files import Files
from paritrace.inference.artifact import Place
from paritrace.inference.context import ContextDefinition
from paritrace.inference.identity_rows import Rows, as_rows, context_row, marker, reaches, rows_of
from paritrace.inference.lines import LineDecoder, bad_line, scan
from paritrace.runs.committed import read_index
from paritrace.runs.intent_records import Lost
from paritrace.runs.intents import MoreContent, NewContent


class Known(Struct, frozen=True):
    """Identity rows of an artifact's bytes.

    `stored`: the rows as they lie beside the artifact, None where they had to be made by reading all of it.
    `num_bytes`: up to where they reach.
    """

    rows: Rows
    data: bytes
    stored: bytes | None
    num_bytes: int


def known_of(place: Place, *, given_up: Sequence[Lost] = (), files: Files) -> Known:
    """Return the identities of an artifact: quickly where its index is whole, by reading the artifact where not.

    Args:
        given_up: bytes that are to be passed over from now on, besides those of the index.

    Raises:
        EvidenceError: Refused: `invalid_line`, `torn_tail` of bytes that nobody has committed.
    """
    index = read_index(place.folder, place.name, files=files)
    size = files.size(place.path) if files.exists(place.path) else 0
    stored = files.read_if_present(place.folder / place.identities)
    if not given_up and index is not None and stored is not None and index.num_bytes == size == reaches(stored):
        return Known(rows=as_rows(stored), data=stored, stored=stored, num_bytes=size)
    known_losses = () if index is None else index.losses
    lost = tuple((one.offset, one.length) for one in (*known_losses, *given_up))
    made = _read(place.path, lost, files) + marker(size) if size else b""
    return Known(rows=as_rows(made), data=made, stored=None, num_bytes=size)


def change_of(
    known: Known, place: Place, new: Sequence[bytes], *, through: int, files: Files
) -> MoreContent | NewContent:
    """Return what is to be written of the identities with an append that reaches to byte `through`."""
    more = (*new, marker(through))
    if known.stored is not None:
        return MoreContent(place.identities, len(known.stored), more)
    found = files.read_if_present(place.folder / place.identities)
    return NewContent(place.identities, None if found is None else sha256_hex(found), b"".join((known.data, *more)))


def _read(path: Path, lost: tuple[tuple[int, int], ...], files: Files) -> bytes:
    rows, decoder = bytearray(), LineDecoder()
    for line in scan(files.iter_chunks(path), decoder=decoder, lost=lost):
        if line.found is None:
            raise bad_line(line, name=str(path))
        if isinstance(line.found, ContextDefinition):
            rows += context_row(decoder.contexts[line.found.context_id])
        else:
            row, entity = rows_of(line.found, line.data)
            rows += row + entity
    return bytes(rows)
