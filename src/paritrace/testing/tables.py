"""Builds real run directories call by call, with real fingerprints of the arrays that are passed in.

Longer than 400 lines: one builder with a short method for each kind of record of the journal.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
import numpy.typing as npt

from paritrace.evidence import calls, codec
from paritrace.evidence.calls import Level, OriginKind, Phase
from paritrace.evidence.digests import sha256_hex
from paritrace.evidence.distributed import Collective, CollectiveCounts, Group, Mesh, Placement
from paritrace.evidence.fingerprints import strong
from paritrace.evidence.gaps import CaptureGap, Gap, RunGap
from paritrace.evidence.ids import ProcessIdentity
from paritrace.evidence.summaries import element_sum, summarise
from paritrace.runs.envelope import AttachmentKind, Receipt, Role, SessionStatus
from paritrace.runs.launch import launch_of
from paritrace.runs.opening import SessionRequest, begin_session

Array = npt.NDArray[Any]
REGIONS = 4
BFLOAT16 = "bfloat16"  # NumPy has no such dtype: pass uint16 bits and name it


@dataclass(frozen=True)
class Value:
    """An array as a tensor: `dtype` by its torch name where NumPy has another one."""

    array: Array
    dtype: str = ""
    semantics: str | None = None

    @property
    def torch_dtype(self) -> str:
        return self.dtype or str(self.array.dtype)


@dataclass(frozen=True)
class Out:
    """One output of a built call, to be passed on as an input."""

    record: int
    slot: int
    value: Value | Gap[CaptureGap]


@dataclass(frozen=True)
class Named:
    """An input that no call made: a parameter, a buffer, the batch, a generator's state."""

    kind: OriginKind
    name: str
    value: Value | Gap[CaptureGap]


Given = Out | Named


def parameter(name: str, array: Array) -> Named:
    """A named parameter."""
    return Named(OriginKind.PARAMETER, name, Value(array))


def batch(array: Array, name: str = "args[0]") -> Named:
    """A batch input."""
    return Named(OriginKind.BATCH, name, Value(array))


IN_FLIGHT = Gap(CaptureGap.IN_FLIGHT)
WORLD = (0, 1)


@dataclass(frozen=True)
class Reduction:
    """What makes a call a collective; `by` is empty where it was never seen to complete."""

    operation: str = "all_reduce"
    reduce: str = "sum"
    group: str = "world"
    ranks: tuple[int, ...] = WORLD
    root: int = -1
    peer: int = -1
    asynchronous: bool = False
    parameters: tuple[str, ...] = ()
    by: str = "wait"


@dataclass(frozen=True)
class Local:
    """What one rank holds of a tensor, with its kind; placed in a whole of `shape` where `placements` say so."""

    array: Array
    placements: tuple[str, ...] = ()
    shape: tuple[int, ...] = ()
    offset: tuple[int, ...] = ()
    dtype: str = ""


@dataclass(frozen=True)
class Told:
    """What a call may say besides its inputs and outputs."""

    line: int = 1
    link: int = -1
    node: str = ""
    flags: int = 0
    scalars: Mapping[str, str] = field(default_factory=dict[str, str])
    module: bool = False
    pending: bool = False  # its results come later, in a row of their own


@dataclass
class RunTable:
    """A run of one process; records are written by `write`, in the order in which they were made."""

    source: str = ""
    file: str = "<main>"
    levels: tuple[Level, ...] = (Level.MODULE, Level.OP)
    schemes: Mapping[str, str] = field(default_factory=lambda: {"bits": "xxh3-64", "elements": "elements-u64"})
    gaps: Mapping[str, int] = field(default_factory=dict[str, int])  # as its writer counted them
    _lines: list[bytes] = field(default_factory=list[bytes])
    _ids: dict[tuple[str, object], int] = field(default_factory=dict[tuple[str, object], int])
    _counts: dict[str, int] = field(default_factory=lambda: {"calls": 0, "details": 0, "states": 0})
    _next: itertools.count[int] = field(default_factory=itertools.count)
    _ordinals: dict[int, int] = field(default_factory=dict[int, int])  # group -> its collectives so far
    _open: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])  # (record, scope) of the modules around
    step: int = 0
    microbatch: int = 0
    phase: Phase = Phase.FORWARD

    def op(self, name: str, *inputs: Given, out: object = None, **told: Any) -> Out:
        """One operator call with a single output; `told` is what `Told` takes."""
        return self.call(name, inputs=inputs, outputs=(out,), **told)[0]

    def call(
        self, name: str, *, inputs: Sequence[Given] = (), outputs: Sequence[object] = (), **told: Any
    ) -> list[Out]:
        """One operator call; an output is an array, a `Value`, or a `Gap`."""
        function = self._function(name, Level.OP)
        return self._record(next(self._next), function, inputs=inputs, outputs=outputs, told=Told(**told))

    def collective(
        self,
        how: Reduction,
        given: Given,
        *,
        out: object = None,
        function: str = "c10d.allreduce_.default",
        **told: Any,
    ) -> Out:
        """One collective with one tensor; its result `out` stands in the row of its completion (CA-31)."""
        key = ("group", (how.group, how.ranks))
        if key not in self._ids:
            self._mark(Group(self._take(key), how.group, how.ranks, "gloo"))
        group, record = self._ids[key], next(self._next)
        ordinal = self._ordinals.get(group, 0)
        self._ordinals[group] = ordinal + 1
        self._mark(
            Collective(
                record, group, how.operation, ordinal, how.reduce, how.root, how.peer, how.asynchronous, how.parameters
            )
        )
        made = self._record(
            record,
            self._function(function, Level.OP),
            inputs=(given,),
            outputs=(out,),
            told=Told(**told, pending=True),
        )
        if how.by:
            bits = tuple(self._slot("", result.value, -1).bits for result in made)
            self._row(calls.Completed(record, how.by, record, bits))
            self._details(record, "o", [result.value for result in made])
        return made[0]

    def counted(self, counts: Mapping[str, int]) -> None:
        """How many collectives each group made in this step (level digest)."""
        self._mark(CollectiveCounts(self.step, dict(counts)))

    def enter(self, module: str, cls: str = "Module", nth: int = 0) -> Module:
        """Enter a module; what is called before `leave` stands inside."""
        around = self._open[-1][1] if self._open else 0
        key = ("scope", (around, module, cls, nth))
        if key not in self._ids:
            self._mark(calls.Scope(self._take(key, first=1), around, module, cls, nth))
        entered = Module(self, next(self._next), self._ids[key], cls)
        self._open.append((entered.record, entered.scope))
        return entered

    def mesh(self, dims: Sequence[str], shape: Sequence[int], coordinate: Sequence[int]) -> None:
        """The mesh that placements of this rank refer to."""
        self._mark(Mesh(0, tuple(dims), tuple(shape), tuple(coordinate), "device_mesh"))

    def state(self, group: str, values: Mapping[str, Array | Local], *, moment: str = "begin") -> None:
        """A group of the state inventory at a moment of this step; a `Local` has its kind recorded."""
        names = tuple(values)
        kinds = tuple(self._local_kind(v) if isinstance(v, Local) else -1 for v in values.values())
        key = ("state_names", (group, names, kinds))
        if key not in self._ids:
            self._mark(calls.StateNames(self._take(key), group, names, kinds))
        held = [v if isinstance(v, Local) else Local(v) for v in values.values()]
        told = tuple(f"{element_sum(v.array.tobytes(), v.dtype or str(v.array.dtype)):016x}" for v in held)
        self._row(calls.State(self.step, self.microbatch, moment, self._ids[key], told))
        self._counts["states"] += 1

    def _local_kind(self, held: Local) -> int:
        array = held.array
        strides = tuple(stride // array.itemsize for stride in np.ascontiguousarray(array).strides)
        dtype = held.dtype or str(array.dtype)
        if not held.placements:
            return self._kind(dtype, array.shape, strides, array.nbytes)
        key = ("kind", (dtype, array.shape, strides, held.placements, held.shape, held.offset))
        if key not in self._ids:
            made = self._take(key)
            kind = calls.Kind(
                made, dtype, array.shape, strides, "strided", "cpu", True, array.size, array.nbytes, "DTensor"
            )
            self._mark(kind)
            self._mark(Placement(made, 0, held.placements, held.shape, held.offset))
        return self._ids[key]

    def loss(self, value: float) -> None:
        """The loss that backward starts from."""
        self._mark(calls.LossMark(self.step, self.microbatch, float(value).hex()))

    def end_step(self, *, grad_norm: float | None = None, backwards: int = 1) -> None:
        """Close this step; the next one begins."""
        norm = Gap(CaptureGap.NOT_OBSERVED) if grad_norm is None else float(grad_norm).hex()
        self._mark(calls.StepMark(self.step, 0, 0, 0, backwards, backwards, norm))
        self.step += 1
        self.phase = Phase.FORWARD

    def mark(self, mark: calls.Mark) -> None:
        """Any other mark, as it is."""
        self._mark(mark)

    def write(
        self, place: Path, *, rank: int = 0, world_size: int = 1, expected: str = "", run_id: str | None = None
    ) -> Path:
        """Write the run directory; further ranks join it."""
        environ = {} if world_size == 1 else {"RANK": str(rank), "WORLD_SIZE": str(world_size), "LOCAL_RANK": str(rank)}
        process = ProcessIdentity("host", Gap(RunGap.NO_BOOT_ID), Gap(RunGap.NO_PID_NAMESPACE), 1, 1)
        session = begin_session(
            place,
            SessionRequest(
                role=Role.TRAINING,
                launch=launch_of(environ, process=process),
                process=process,
                run_id=run_id,
                config_digest="0" * 64,
                metadata={"expected_steps": expected} if expected else {},
            ),
        )
        session.attach_copy(AttachmentKind.SOURCE, "<main>", self.source.encode(), "text/x-python")
        header = calls.JournalHeader(
            calls.FORMAT, calls.VERSION, session.session_id, rank, 0, 0, self.levels, dict(self.schemes), REGIONS
        )
        journal = session.open_journal()
        lines = [codec.encode_mark(header), *self._lines]
        end = calls.EndMark(len(lines), gaps=dict(self.gaps), **self._counts)
        journal.write(b"".join([*lines, codec.encode_mark(end)]))
        journal.sync()
        journal.close()
        session.end(
            SessionStatus.COMPLETED,
            Receipt(len(lines), self._counts["calls"], self._counts["details"], self._counts["states"]),
        )
        return place

    # --- records -----------------------------------------------------------------------------------------------

    def _record(
        self, record: int, function: int, *, inputs: Sequence[Given], outputs: Sequence[object], told: Told
    ) -> list[Out]:
        made = [Out(record, place, _value(given)) for place, given in enumerate(outputs)]
        parent, scope = self._open[-1] if self._open else (-1, 0)
        ins = tuple(self._input(place, given) for place, given in enumerate(inputs))
        outs = tuple(self._slot(f"out[{place}]", out.value, -1) for place, out in enumerate(made))
        if told.pending:
            outs = tuple(msgspec.structs.replace(slot, bits=IN_FLIGHT) for slot in outs)
        row = calls.Call(
            id=record,
            left=next(self._next),
            parent=(self._open[-2][0] if len(self._open) > 1 else -1) if told.module else parent,
            function=function,
            site=self._site(told.line),
            workload_site=self._site(told.line),
            scope=scope,
            context=self._context(),
            thread=self._name("main"),
            flags=told.flags,
            link=told.link,
            node=self._name(told.node) if told.node else -1,
            scalars=self._scalars(told.scalars),
            start_ns=record,
            duration_ns=1,
            inputs=ins,
            outputs=outs,
        )
        self._row(row)
        self._counts["calls"] += 1
        self._details(record, "i", [given.value for given in inputs])
        if not told.pending:
            self._details(record, "o", [out.value for out in made])
        return made

    def _details(self, record: int, side: str, values: Sequence[Value | Gap[CaptureGap]]) -> None:
        if Level.MODULE not in self.levels:
            return
        for place, value in enumerate(values):
            if isinstance(value, Gap):
                continue
            data = np.ascontiguousarray(value.array)
            found = summarise(data.tobytes(), dtype=value.torch_dtype, num_elements=data.size, regions=REGIONS)
            fields = msgspec.structs.asdict(found)
            self._row(calls.Detail(call=record, side=side, slot=place, semantics=value.semantics, **fields))
            self._counts["details"] += 1

    def _input(self, place: int, given: Given) -> calls.Slot:
        if isinstance(given, Out):
            return self._slot(f"args[{place}]", given.value, (given.record, given.slot))
        key = ("origin", (given.kind, given.name))
        if key not in self._ids:
            self._mark(calls.Origin(self._take(key), given.kind, given.name))
        return self._slot(f"args[{place}]", given.value, self._ids[key])

    def _slot(self, name: str, value: Value | Gap[CaptureGap], source: tuple[int, int] | int) -> calls.Slot:
        if isinstance(value, Gap):
            return calls.Slot(self._name(name), self._kind("float32", (1,), (1,), 4), value, source)
        array = value.array
        strides = tuple(stride // array.itemsize for stride in array.strides)
        kind = self._kind(value.torch_dtype, array.shape, strides, array.nbytes)
        order = sorted(range(array.ndim), key=lambda dim: (-array.strides[dim], dim))
        covered = np.ascontiguousarray(array.transpose(order)) if array.ndim else array
        return calls.Slot(self._name(name), kind, f"{strong(covered.tobytes()):016x}", source)

    # --- definitions -------------------------------------------------------------------------------------------

    def _function(self, name: str, level: Level) -> int:
        key = ("function", (name, level))
        if key not in self._ids:
            self._mark(calls.Function(self._take(key), name, level))
        return self._ids[key]

    def _site(self, line: int) -> int:
        key = ("site", line)
        if key not in self._ids:
            digest = sha256_hex(self.source.encode())
            made = self._take(key)
            kind = calls.SourceKind.MAIN if self.file == "<main>" else calls.SourceKind.WORKLOAD
            self._mark(calls.Site(made, kind, self.file, line, 0, "main", digest))
        return self._ids[key]

    def _context(self) -> int:
        key = ("context", (self.step, self.microbatch, self.phase))
        if key not in self._ids:
            self._mark(calls.Context(self._take(key), self.step, self.microbatch, self.phase))
        return self._ids[key]

    def _kind(self, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...], nbytes: int) -> int:
        key = ("kind", (dtype, shape, strides))
        if key not in self._ids:
            size = int(np.prod(shape))
            made = self._take(key)
            self._mark(calls.Kind(made, dtype, shape, strides, "strided", "cpu", False, size, nbytes))
        return self._ids[key]

    def _name(self, text: str) -> int:
        key = ("name", text)
        if key not in self._ids:
            self._mark(calls.Name(self._take(key), text))
        return self._ids[key]

    def _scalars(self, values: Mapping[str, str]) -> int:
        key = ("scalars", tuple(values.items()))
        if key not in self._ids:
            self._mark(calls.Scalars(self._take(key), dict(values)))
        return self._ids[key]

    def _take(self, key: tuple[str, object], *, first: int = 0) -> int:
        self._ids[key] = first + sum(kind == key[0] for kind, _ in self._ids)
        return self._ids[key]

    def _mark(self, mark: calls.Mark) -> None:
        self._lines.append(codec.encode_mark(mark))

    def _row(self, row: calls.Row) -> None:
        self._lines.append(codec.encode_row(row))


@dataclass
class Module:
    """A module that was entered."""

    table: RunTable
    record: int
    scope: int
    cls: str

    def leave(self, *inputs: Given, out: object = None, line: int = 1) -> Out:
        """Leave the module; its call is recorded with these inputs and output."""
        table = self.table
        (made,) = table._record(
            self.record,
            table._function(self.cls, Level.MODULE),
            inputs=inputs,
            outputs=(out,),
            told=Told(line=line, module=True),
        )
        table._open.pop()
        return made


def _value(given: object) -> Value | Gap[CaptureGap]:
    if isinstance(given, Out):
        return given.value
    if isinstance(given, Value):
        return given
    return cast(Gap[CaptureGap], given) if isinstance(given, Gap) else Value(np.asarray(given))
