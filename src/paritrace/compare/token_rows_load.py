"""Loads the rows of tokens of a run, all ranks together: a token is where its sample is, on whatever rank (CP-27)."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from paritrace.compare.settings import Settings
from paritrace.compare.shifted_steps import ShiftedJournal
from paritrace.evidence.calls import Context, Kind, Name
from paritrace.evidence.row_summaries import row_values
from paritrace.evidence.rows import RowAddresses, TokenRows
from paritrace.runs.reading import Run

ROW_START = b'\n["r",'
DECLARED = "int64"

Whole = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint64]
Values = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Part:
    """The rows of one output as one record holds them; arrays are as long as there are rows.

    `values`: the samples, shape (rows, K), None where none were kept or the dtype holds no numbers. `tops`, `margins`:
    empty where no choice is made from the output. `order`: rank and place in the journal.
    """

    samples: tuple[str, ...]
    index: Whole
    positions: Whole
    bits: Bits
    norms: Values
    values: Values | None
    tops: Whole
    margins: Values
    rows: Whole
    dtype: str
    features: int
    semantics: str | None
    rank: int
    call: int
    microbatch: int
    order: tuple[int, int]

    @property
    def variant(self) -> tuple[str, int, str | None]:
        """What must be alike for bits to be comparable, beside the values."""
        return self.dtype, self.features, self.semantics


Cell = tuple[int, str]
"""Step and output."""


@dataclass(slots=True)
class SideRows:
    """All rows of a side, by step and output, in the order of execution per rank."""

    parts: dict[Cell, list[Part]] = field(default_factory=dict[Cell, list[Part]])
    undefined: int = 0  # records whose definitions were lost


def load_rows(run: Run, *, settings: Settings, side: str, without: Collection[str] = ()) -> SideRows:
    """Read the rows of the compared ranks and steps; of a run without any, its journals are only searched.

    Args:
        without: ids of sessions that are known to hold none.

    Raises:
        EvidenceError: Refused: a journal of another format or of a newer major version.
    """
    found = SideRows()
    for view in run.sessions:
        if settings.ranks is not None and view.rank not in settings.ranks:
            continue
        if view.session_id in without or not _holds_rows(run.journal_bytes(view.session_id)):
            continue
        reader = _Reader(found, settings=settings, side=side, rank=view.rank)
        journal, shift = run.journal(view.session_id), settings.shift_of(run.run_id, view.session_id)
        for batch in ShiftedJournal(journal, by=shift).batches() if shift else journal.batches():
            for record in batch:
                reader.take(record)
    return found


def _holds_rows(chunks: Iterable[bytes]) -> bool:
    tail = b""
    for chunk in chunks:
        if ROW_START in tail + chunk:
            return True
        tail = chunk[-len(ROW_START) :]
    return False


class _Reader:
    """Takes the records of one session."""

    def __init__(self, found: SideRows, *, settings: Settings, side: str, rank: int) -> None:
        self._found = found
        self._settings = settings.seen_from(side, rank)
        self._rank = rank
        self._names: dict[int, str] = {}
        self._contexts: dict[int, Context] = {}
        self._dtypes: dict[int, str] = {-1: DECLARED}
        self._addresses: dict[int, RowAddresses] = {}
        self._count = 0

    def take(self, record: object) -> None:
        match record:
            case Name():
                self._names[record.id] = record.text
            case Context():
                self._contexts[record.id] = record
            case Kind():
                self._dtypes[record.id] = record.dtype
            case RowAddresses():
                self._addresses[record.id] = record
            case TokenRows():
                self._rows(record)
            case _:
                pass

    def _rows(self, record: TokenRows) -> None:
        self._count += 1
        address, context = self._addresses.get(record.addresses), self._contexts.get(record.context)
        name, dtype = self._names.get(record.name), self._dtypes.get(record.kind)
        if address is None or context is None or name is None or dtype is None or not _is_whole(record, address):
            self._found.undefined += 1
        elif self._settings.takes_step(context.step):
            spelled = self._spelled(name)
            if not self._settings.ignores(*{spelled, spelled.partition(":")[0]}):
                part = _part(record, address, dtype, self._rank, context.microbatch, (self._rank, self._count))
                self._found.parts.setdefault((context.step, spelled), []).append(part)

    def _spelled(self, name: str) -> str:
        """An output under the name that its counterpart is looked for: its module as in a comparison by fold."""
        module, colon, slot = name.partition(":")
        return f"{self._settings.spelled(module)}{colon}{slot}"


def _is_whole(record: TokenRows, address: RowAddresses) -> bool:
    """Whether the arrays of a record are as long as its addresses: a foreign file may hold anything."""
    num = len(address.index) // 4
    lengths = (len(address.index), len(address.positions), len(record.rows)) == (4 * num,) * 3
    figures = all(len(data) in (0, 8 * num) for data in (record.norms, record.tops, record.margins))
    known = not num or int(np.frombuffer(address.index, "<i4").max()) < len(address.samples)
    return lengths and len(record.bits) == 8 * num and figures and known


def _part(
    record: TokenRows, address: RowAddresses, dtype: str, rank: int, microbatch: int, order: tuple[int, int]
) -> Part:
    num = len(address.index) // 4
    values = row_values(record.samples, dtype) if record.samples and num else None
    return Part(
        samples=address.samples,
        index=np.frombuffer(address.index, "<i4").astype(np.int64),
        positions=np.frombuffer(address.positions, "<i4").astype(np.int64),
        bits=np.frombuffer(record.bits, "<u8"),
        norms=np.frombuffer(record.norms, "<f8") if record.norms else np.full(num, np.nan),
        values=None if values is None or values.size % num else values.reshape(num, -1),
        tops=np.frombuffer(record.tops, "<i8"),
        margins=np.frombuffer(record.margins, "<f8"),
        rows=np.frombuffer(record.rows, "<i4").astype(np.int64),
        dtype=dtype,
        features=record.features,
        semantics=record.semantics,
        rank=rank,
        call=record.call,
        microbatch=microbatch,
        order=order,
    )
