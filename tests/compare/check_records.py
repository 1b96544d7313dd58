"""Records of a journal that the tests of check are made of: a small run, one figure of which each test changes."""

from collections.abc import Sequence

from paritrace.compare.checks_facts import SessionFacts
from paritrace.evidence.calls import (
    FORMAT,
    VERSION,
    Call,
    ConfigMark,
    Context,
    Counts,
    Detail,
    Flag,
    Function,
    JournalHeader,
    Kind,
    Level,
    LossMark,
    Moments,
    Name,
    Phase,
    Row,
    Scope,
    Site,
    Slot,
    SourceKind,
    State,
    StateNames,
    StepMark,
)
from paritrace.evidence.definition import Definition
from paritrace.evidence.fingerprints import elements
from paritrace.evidence.gaps import CaptureGap, Gap

FLOAT32, BFLOAT16, TRAINABLE = 1, 2, 3
PARAMETERS, GRADIENTS, BATCH = 1, 2, 3
NO_GRADIENT: Gap[CaptureGap] = Gap(CaptureGap.NOT_OBSERVED)
NUM_ELEMENTS = 128
SPREAD = "".join(f"{number * 2654435761 & 0xFFFFFFFF:08x}" for number in range(64))
NAMES = ("layer.weight", "layer.bias")
ONES = format(elements(bytes.fromhex("0000803f"), 4) * NUM_ELEMENTS & (1 << 64) - 1, "016x")
ZEROS = format(elements(bytes(4), 4) * NUM_ELEMENTS & (1 << 64) - 1, "016x")


def kind(identity: int, dtype: str, *, requires_grad: bool = False) -> Kind:
    itemsize = 2 if dtype == "bfloat16" else 4
    return Kind(
        identity, dtype, (NUM_ELEMENTS,), (1,), "strided", "cpu", requires_grad, NUM_ELEMENTS, NUM_ELEMENTS * itemsize
    )


def definitions() -> list[Definition]:
    """Returns the header and what the calls and states name."""
    return [
        JournalHeader(FORMAT, VERSION, "s", 0, 0, 0, (Level.DIGEST, Level.MODULE), {"bits": "xxh3-64"}, 4),
        kind(FLOAT32, "float32"),
        kind(BFLOAT16, "bfloat16"),
        kind(TRAINABLE, "float32", requires_grad=True),
        Name(1, "args[0]"),
        Function(1, "torch.nn.modules.linear.Linear", Level.MODULE),
        Site(1, SourceKind.WORKLOAD, "train.py", 12, 4, "forward", "0" * 64),
        Scope(1, 0, "model.layer", "Linear", 0),
        *(Context(1 + step, step, 0, Phase.FORWARD) for step in range(3)),
        state_names(PARAMETERS, "parameter"),
        state_names(GRADIENTS, "gradient"),
        StateNames(BATCH, "batch", ("args[0]",), (FLOAT32,)),
    ]


def state_names(
    identity: int, group: str, *, names: Sequence[str] = NAMES, kinds: Sequence[int] | None = None
) -> StateNames:
    return StateNames(identity, group, tuple(names), tuple(kinds or [TRAINABLE] * len(names)))


def begin(step: int, *values: str | Gap[CaptureGap], names: int = PARAMETERS) -> State:
    return State(step, 0, "begin", names, values)


def gradients(step: int, *values: str | Gap[CaptureGap], names: int = GRADIENTS) -> State:
    return State(step, 0, "grads", names, values)


def batch(step: int, value: str, *, microbatch: int = 0) -> State:
    return State(step, microbatch, "batch", BATCH, (value,))


def step_mark(step: int, *, norm: str | Gap[CaptureGap] = "0x1.8p+0", optimizer_steps: int = 1) -> StepMark:
    return StepMark(step, 0, 1, 10, 1, optimizer_steps, norm)


def loss(step: int, value: str = "0x1.0p+1") -> LossMark:
    return LossMark(step, 0, value)


def optimizer(**rates: str) -> ConfigMark:
    return ConfigMark(
        "optimizer", {"class": "torch.optim.adamw.AdamW"} | {f"{g}.lr": rate for g, rate in rates.items()}
    )


def call(
    identity: int,
    *,
    left: int | None = None,
    inputs: Sequence[int] = (FLOAT32,),
    outputs: Sequence[int] = (FLOAT32,),
    bits: str | Gap[CaptureGap] = "00000000000000aa",
    flags: int = 0,
    link: int = -1,
    step: int = 0,
) -> Call:
    return Call(
        id=identity,
        left=identity + 1 if left is None else left,
        parent=-1,
        function=1,
        site=1,
        workload_site=1,
        scope=1,
        context=1 + step,
        thread=1,
        flags=flags,
        link=link,
        node=-1,
        scalars=-1,
        start_ns=0,
        duration_ns=1,
        inputs=tuple(Slot(1, used, "00000000000000bb") for used in inputs),
        outputs=tuple(Slot(1, used, bits) for used in outputs),
    )


def recompute(identity: int, *, link: int, bits: str | Gap[CaptureGap]) -> Call:
    return call(identity, flags=int(Flag.RECOMPUTE), link=link, bits=bits)


def detail(
    of: int,
    side: str,
    *,
    nan: int = 0,
    positive: int = 0,
    negative: int = 0,
    low_bits_zero: int = 1,
    samples: str = SPREAD,
) -> Detail:
    counts = Counts(nan, positive, negative, 0, 0, 0, low_bits_zero)
    return Detail(of, side, 0, "0" * 16, "", "", "0" * 16, Moments(0.0, 1.0, 1.0, 1.0, 1.0), counts, samples, False)


def training(*, steps: int = 3) -> list[Row | Definition]:
    """Returns the records of a healthy run: both parameters have gradients and change, batches differ."""
    records: list[Row | Definition] = [*definitions(), optimizer(group0="0.001")]
    for step in range(steps):
        records += [
            begin(step, f"a{step:015x}", f"b{step:015x}"),
            batch(step, f"c{step:015x}"),
            call(step * 100, step=step),
            detail(step * 100, "i"),
            detail(step * 100, "o"),
            loss(step),
            gradients(step, f"d{step:015x}", f"e{step:015x}"),
            step_mark(step),
        ]
    return records


def facts_of(records: Sequence[Row | Definition]) -> SessionFacts:
    facts = SessionFacts()
    facts.see_all(records)
    return facts
