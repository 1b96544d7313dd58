"""Records of several ranks that the tests of check across ranks are made of, and the facts they give."""

from collections.abc import Mapping, Sequence

from paritrace.compare.checks_across import Across, Presence
from paritrace.compare.checks_heads import read_head
from paritrace.compare.checks_result import Invariant
from paritrace.compare.checks_rules_collectives import collective_invariants
from paritrace.compare.checks_rules_inputs import input_invariants
from paritrace.compare.checks_rules_replicas import replica_invariants
from paritrace.evidence.calls import (
    FORMAT,
    VERSION,
    Call,
    Completed,
    Context,
    Function,
    JournalHeader,
    Kind,
    Level,
    Name,
    Origin,
    OriginKind,
    Phase,
    Row,
    Site,
    Slot,
    SourceKind,
    State,
    StateNames,
)
from paritrace.evidence.definition import Definition
from paritrace.evidence.distributed import Collective, Group, Mesh, Replicated
from paritrace.evidence.gaps import CaptureGap, Gap
from tests.compare import check_records as r

Records = list[Row | Definition]
WORLD = 0
RNG_KIND = 9
PARAMETERS, GRADIENTS, BATCH, OPTIMIZER, RNG, BUFFERS = 1, 2, 3, 4, 5, 6
IN_FLIGHT: Gap[CaptureGap] = Gap(CaptureGap.IN_FLIGHT)
NAMES = ("head.weight", "body.weight")


def definitions(rank: int, *, names: Sequence[str] = NAMES, steps: int = 3) -> Records:
    """Returns the header and what the states and calls of a rank name."""
    return [
        JournalHeader(FORMAT, VERSION, f"rank-{rank}", rank, 0, 0, (Level.DIGEST, Level.OP), {"bits": "xxh3-64"}, 4),
        r.kind(r.FLOAT32, "float32"),
        r.kind(r.TRAINABLE, "float32", requires_grad=True),
        Kind(RNG_KIND, "rng", (), (), "state", "cpu", False, 0, 0, "Generator"),
        Name(1, "args[0]"),
        Function(1, "c10d.allreduce_.default", Level.OP),
        Function(2, "aten.native_dropout.default", Level.OP),
        *(Site(line, SourceKind.WORKLOAD, "train.py", line, 0, "main", "0" * 64) for line in range(10, 30)),
        Origin(1, OriginKind.RNG, "torch_cpu"),
        *(Context(1 + step, step, 0, Phase.FORWARD) for step in range(steps)),
        r.state_names(PARAMETERS, "parameter", names=names),
        r.state_names(GRADIENTS, "gradient", names=names),
        StateNames(BATCH, "batch", ("args[0]",), (r.FLOAT32,)),
        r.state_names(OPTIMIZER, "optimizer_state", names=[f"{name}:exp_avg" for name in names]),
        StateNames(RNG, "rng", ("torch_cpu",), (-1,)),
        r.state_names(BUFFERS, "buffer", names=("norm.running_mean",)),
    ]


def value(*parts: object) -> str:
    """Returns a fingerprint that depends on all parts."""
    return format(abs(hash(parts)) & (1 << 64) - 1 | 1, "016x")


def training(
    rank: int,
    *,
    unlike: Mapping[tuple[str, str], int] | None = None,
    world: Sequence[int] = (0, 1),
    declared: bool = True,
    steps: int = 3,
) -> Records:
    """Returns a rank of a data-parallel training; `unlike`: (what, name) that is this rank's own from a step on."""
    own = unlike or {}

    def values(what: str, step: int) -> tuple[str, ...]:
        return tuple(
            value(what, name, step, rank if step >= own.get((what, name), steps + 1) else -1) for name in NAMES
        )

    records = definitions(rank, steps=steps)
    records.append(Group(WORLD, "world", tuple(world), "gloo"))
    if declared:
        records.append(Replicated(WORLD, NAMES, "ddp"))
    for step in range(steps):
        records.append(State(step, 0, "begin", PARAMETERS, values("parameter", step)))
        if step:
            records.append(State(step, 0, "begin", OPTIMIZER, values("optimizer_state", step)))
        records.append(State(step, 0, "begin", RNG, (value("rng", rank, step),)))
        records.append(State(step, 0, "batch", BATCH, (value("batch", rank, step),)))
        records.append(State(step, 0, "grads", GRADIENTS, values("gradient", step)))
        records.append(r.step_mark(step))
    return records


def mesh(rank: int, dims: Sequence[str], shape: Sequence[int], *, basis: str = "declared") -> Mesh:
    """Returns the mesh of a rank that spans all ranks, row by row."""
    coordinate: list[int] = []
    rest = rank
    for size in reversed(shape):
        coordinate.insert(0, rest % size)
        rest //= size
    return Mesh(0, tuple(dims), tuple(shape), tuple(coordinate), basis)


def draw(identity: int, *, step: int = 0, read: str = "b" * 16, scope: int = 1) -> Call:
    """Returns a call that draws from torch's generator for a tensor; of scope 0, outside every module."""
    drawn = (Slot(1, r.FLOAT32, read), Slot(1, RNG_KIND, "a" * 16, 1))
    return Call(identity, identity + 1, -1, 2, 10, 10, scope, 1 + step, 1, 0, -1, -1, -1, 0, 1, drawn, ())


def collective(
    ordinal: int,
    *,
    operation: str = "all_reduce",
    reduce: str = "sum",
    group: int = WORLD,
    kind: int = r.FLOAT32,
    line: int = 10,
    result: str | None = "f" * 16,
    step: int = 0,
    root: int = -1,
) -> Records:
    """Returns a collective with its call and, unless `result` is None, its completion."""
    identity = 1000 + 100 * group + 2 * ordinal
    made: Records = [
        Collective(identity, group, operation, ordinal, reduce, root),
        Call(
            identity,
            identity + 1,
            -1,
            1,
            line,
            line,
            0,
            1 + step,
            1,
            0,
            -1,
            -1,
            -1,
            0,
            1,
            (Slot(1, kind, "b" * 16),),
            (Slot(1, kind, IN_FLIGHT),),
        ),
    ]
    return made if result is None else [*made, Completed(identity, "wait", 1, (result,))]


def across_of(
    sessions: Mapping[int, Sequence[Row | Definition]],
    *,
    world_size: int = 0,
    cut: Sequence[int] = (),
    order: Sequence[int] | None = None,
) -> Across:
    """Returns what sessions show of each other, read in an order."""
    expected = world_size or len(sessions)
    missing = tuple(rank for rank in range(expected) if rank not in sessions)
    presence = Presence(0, expected, tuple(sorted(sessions)), missing, tuple(cut))
    ranks = list(order or sessions)
    across = Across([read_head(sessions[rank], rank=rank) for rank in ranks], presence)
    for rank in ranks:
        for _ in across.watch(sessions[rank], rank=rank, has_receipt=rank not in cut):
            pass
    return across


def invariants_of(across: Across) -> dict[str, Invariant]:
    """Returns every invariant across ranks, by name."""
    found = [
        *replica_invariants(across),
        *input_invariants(across),
        *collective_invariants(across),
    ]
    assert len({one.id for one in found}) == len(found)
    return {one.id: one for one in found}
