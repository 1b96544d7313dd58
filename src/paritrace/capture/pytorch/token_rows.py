"""Rows of module outputs and named tensors, token by token, while a batch's rows are declared (CP-27)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from paritrace.capture.addresses import NO_TOKEN, Addresses, Declaration, Numbers, UnclearError
from paritrace.capture.addresses import addresses as addresses_of
from paritrace.capture.levels import DIGEST
from paritrace.capture.pytorch.flatten import tensors
from paritrace.capture.pytorch.internals import without_function_modes
from paritrace.capture.pytorch.kinds import KnownKind
from paritrace.capture.pytorch.memory import geometry_of, holds_bytes, logical_buffer
from paritrace.capture.pytorch.parts import part_of
from paritrace.capture.pytorch.registers import Registers
from paritrace.capture.pytorch.storages import WriteLog
from paritrace.capture.recorder import Recorder
from paritrace.capture.token_rows import Rows
from paritrace.evidence.arrays import as_bytes
from paritrace.evidence.dtypes import dtype_of
from paritrace.evidence.gaps import CountedGap
from paritrace.evidence.row_summaries import row_values, summarise_rows
from paritrace.evidence.rows import POSITIONS, TOKENS, RowAddresses, TokenRows

CHOICES = ("*logits", "*lm_head", "*lm_head:*")  # what a token is chosen from: rows keep the top-2 margin
MAX_DETAIL = 200  # characters of what is said of rows that did not come out
RowBytes = npt.NDArray[np.uint8]


class _Content(NamedTuple):
    """Rows as bytes (rows, bytes of one row), their dtype, and the kind of the tensor, -1 for declared numbers."""

    data: RowBytes
    dtype: str
    kind: int


@dataclass(eq=False, slots=True)
class _Batch:
    """Declared rows; `waiting`: token ids and positions, written at the forward that they are for."""

    addresses: Addresses
    waiting: dict[str, Numbers]
    used: bool = False  # a root module was entered since


class RowObserver:
    """Holds the declared rows; of tensors it keeps nothing past a call (CA-34)."""

    def __init__(self, recorder: Recorder, registers: Registers, *, log: WriteLog, here: Callable[[], bool]) -> None:
        self._recorder = recorder
        self._kinds = registers.kinds
        self._log = log
        self._here = here
        self._batch: _Batch | None = None
        self._held: list[Addresses] = []
        self._written: dict[tuple[object, ...], int] = {}  # of this step: content of addresses -> id
        self._wanted: dict[str, bool] = {}

    @property
    def active(self) -> bool:
        """Whether any rows are declared."""
        return self._batch is not None or bool(self._held)

    # --- what the workload says ----------------------------------------------------------------------------------

    def declare(self, given: dict[str, object]) -> Rows:
        """The rows of a batch; what does not say them is counted, and nothing is recorded for it."""
        self._batch = None
        steps = self._recorder.steps
        if not self._here() or not self._recording(steps.step + (steps.due and not steps.named)):
            return Rows()
        with without_function_modes():
            found = self._guarded(self._declare, given)
        return found if isinstance(found, Rows) else Rows()

    def observe(self, addresses: Addresses, name: str, tensor: torch.Tensor, semantics: str | None) -> None:
        """`Rows.observe`."""
        found = addresses
        if self._here() and self._recording(self._recorder.steps.step):
            with without_function_modes():
                self._write_waiting()
                if self._guarded(self._record, found, (name, -1), tensor, semantics) is False:
                    self._miss(f"{name} of shape {tuple(tensor.shape)}, declared {found.shape}")

    def hold(self, addresses: Addresses) -> None:
        """A `with` block begins."""
        self._held.append(addresses)

    def let_go(self) -> None:
        """It ends, and with it the declaration."""
        if self._held:
            self._held.pop()
        self._batch = None

    # --- what the other observers say ----------------------------------------------------------------------------

    def root_entered(self) -> None:
        """A declaration is for one forward: rows of the next batch must not pass for its own."""
        batch = self._batch
        if batch is None:
            return
        if batch.used and not self._held:
            self._batch = None
            return
        batch.used = True
        self._write_waiting()

    def left(self, module: str | None, scope: int, record: int, output: Any) -> None:
        """A module's forward ended; the recompute of a checkpoint is no second observation."""
        found = self._held[-1] if self._held else None if self._batch is None else self._batch.addresses
        if found is None or module is None or not self._wants(module) or self._recorder.steps.backward_depth:
            return
        if self._recording(self._recorder.steps.step):
            with without_function_modes():
                self._guarded(self._outputs, found, (module, scope, record), output)

    def step_ended(self) -> None:
        """Addresses are written anew in each step, so that a step reads without the others."""
        self._written.clear()

    # --- recording -----------------------------------------------------------------------------------------------

    def _recording(self, step: int) -> bool:
        return bool(self._recorder.plan.written(step) - DIGEST)

    def _guarded(self, action: Callable[..., object], *args: Any) -> object:
        try:
            return action(*args)
        except Exception as error:  # noqa: BLE001  a fault of ours becomes a gap (P6)
            self._recorder.count(CountedGap.CAPTURE_ERROR, f"rows: {type(error).__name__}")
            return None

    def _miss(self, what: str) -> None:
        self._recorder.count(CountedGap.ROWS_NOT_ADDRESSED, what[:MAX_DETAIL])

    def _declare(self, given: dict[str, object]) -> Rows:
        try:
            numbers = {name: _numbers(value) for name, value in given.items() if name != "ids" and value is not None}
            found = addresses_of(Declaration(ids=_ids(given["ids"]), **numbers))
            for name in {TOKENS, POSITIONS} & numbers.keys():
                if numbers[name].size != found.index.size:
                    raise UnclearError(f"{name} of shape {numbers[name].shape}, rows of shape {found.shape}")
        except UnclearError as error:
            self._miss(f"rows: {error}")
            return Rows()
        self._batch = _Batch(found, {name: numbers[name] for name in (TOKENS, POSITIONS) if name in numbers})
        return Rows(found, self)

    def _write_waiting(self) -> None:
        """Token ids by their fingerprints, and the positions that the model is given, so that these compare too."""
        batch = self._batch
        if batch is None:
            return
        waiting, batch.waiting = batch.waiting, {}
        if self._recording(self._recorder.steps.step):
            for name, value in waiting.items():
                data = np.ascontiguousarray(value, dtype="<i8").reshape(-1, 1).view(np.uint8)
                self._guarded(self._write, batch.addresses, (name, -1), _Content(data, "int64", -1))

    def _outputs(self, found: Addresses, place: tuple[str, int, int], output: Any) -> None:
        module, scope, record = place
        taken = [
            self._record(found, (f"{module}{self._nth(scope)}:{path}", record), tensor, None)
            for path, tensor in tensors(output, "out")
        ]
        if taken and not any(taken):
            self._miss(f"outputs of {module or 'the root module'}, declared {found.shape}")

    def _record(self, found: Addresses, named: tuple[str, int], tensor: torch.Tensor, semantics: str | None) -> bool:
        """Write the rows of a tensor; False where its rows are not the declared ones or cannot be read."""
        kind = self._kinds.of(tensor)
        part = part_of(tensor)
        if not kind.readable or not kind.whole or not _fits(tuple(part.shape), found.shape):
            return False
        if not holds_bytes(part, kind.geometry, part.data_ptr()) or self._log.in_flight(part, kind):
            return False
        data = _rows_of(part, kind, found.index.size)
        self._write(found, named, _Content(data, kind.geometry.dtype, kind.id), semantics)
        return True

    def _write(self, found: Addresses, named: tuple[str, int], content: _Content, semantics: str | None = None) -> None:
        name, record = named
        recorder = self._recorder
        kept = np.flatnonzero(found.positions.reshape(-1) != NO_TOKEN)
        summary = summarise_rows(
            np.ascontiguousarray(content.data[kept]),
            dtype=content.dtype,
            with_top=any(fnmatchcase(name, pattern) for pattern in CHOICES),
            with_values=name != TOKENS or content.kind >= 0,
        )
        recorder.emit(
            TokenRows(
                self._address(found, kept),
                recorder.context(in_module=True),
                record,
                recorder.definitions.name(name),
                content.kind,
                content.data.shape[1] // dtype_of(content.dtype).itemsize,
                kept.astype("<i4").tobytes(),
                *summary,
                semantics,
            )
        )

    def _address(self, found: Addresses, kept: npt.NDArray[np.intp]) -> int:
        """The id of these addresses; alike ones of a step are written once."""
        index = found.index.reshape(-1)[kept].astype("<i4").tobytes()
        positions = found.positions.reshape(-1)[kept].astype("<i4").tobytes()
        key = (found.samples, index, positions)
        known = self._written.get(key)
        if known is None:
            known = self._written[key] = self._recorder.definitions.new_id("addresses")
            self._recorder.emit(RowAddresses(known, found.samples, index, positions))
        return known

    def _wants(self, module: str) -> bool:
        found = self._wanted.get(module)
        if found is None:
            patterns = self._recorder.settings.rows
            found = self._wanted[module] = any(fnmatchcase(module, pattern) for pattern in patterns)
        return found

    def _nth(self, scope: int) -> str:
        """Which call of its module this is within one forward: a shared layer runs several times."""
        return self._recorder.definitions.nth_below_root(scope)


def _fits(shape: tuple[int, ...], rows: tuple[int, ...]) -> bool:
    """Whether a tensor's first dims are the rows': the same, one dim of all of them, or behind a batch of one."""
    total = int(np.prod(rows))
    return shape[: len(rows)] == rows or shape[:1] == (total,) or shape[:2] == (1, total)


def _rows_of(part: torch.Tensor, kind: KnownKind, num_rows: int) -> RowBytes:
    """The bytes of a tensor in logical order, one row for each token; borrowed where it is contiguous."""
    data = as_bytes(logical_buffer(part.data_ptr(), kind.geometry))
    return data.reshape(num_rows, data.size // num_rows if num_rows else dtype_of(kind.geometry.dtype).itemsize)


def _numbers(value: object) -> Numbers:
    """Whole numbers of a tensor, an array or nested lists, copied; a tensor is read by its address (CA-33)."""
    if not isinstance(value, torch.Tensor):
        return _plain_numbers(value)
    part = part_of(value)
    geometry = geometry_of(part)
    if geometry.gap is not None or not holds_bytes(part, geometry, part.data_ptr()):
        raise UnclearError(f"a tensor of shape {tuple(value.shape)} on {value.device.type} cannot be read")
    data = bytes(logical_buffer(part.data_ptr(), geometry))
    if geometry.dtype == "int64":
        return np.frombuffer(data, dtype="<i8").reshape(geometry.shape)
    values = row_values(data, geometry.dtype)
    if values is None:
        raise UnclearError(f"a tensor of {geometry.dtype} holds no whole numbers")
    return values.astype(np.int64).reshape(geometry.shape)


def _plain_numbers(value: object) -> Numbers:
    try:
        found: npt.NDArray[Any] = np.asarray(value)
    except ValueError as error:  # nested lists of unequal lengths
        raise UnclearError(f"a {type(value).__name__} is no array: {error}") from error
    if found.dtype.kind not in "biuf":
        raise UnclearError(f"a {type(value).__name__} holds no numbers")
    return found.astype(np.int64)


def _ids(value: object) -> object:
    return _numbers(value) if isinstance(value, torch.Tensor) else value
