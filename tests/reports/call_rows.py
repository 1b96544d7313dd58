"""Rows of a comparison that the tests of the reports use: both sides of `comparisons.parted`, in small."""

from msgspec.structs import replace

from paritrace.compare.result import Agreement, Basis, DifferenceClass, Group, Status, Unpaired
from paritrace.compare.rows import CallRow, Correspondence, Side, SlotRow
from paritrace.evidence.gaps import CaptureGap, Gap

FULL = SlotRow(
    direction="o",
    name="out[0]",
    dtype="float32",
    shape=(2, 5),
    logical_nbytes=40,
    bits="00112233445566aa",
    xor="0000000100000002000000030000000f",
    regions="".join(f"{number:016x}" for number in range(4)),
    elements="00000000000000ff",
    agreement=Agreement.DIFFERENT,
)
LEAN = SlotRow(
    direction="i", name="args[0]", dtype="bfloat16", shape=(), logical_nbytes=2, bits=Gap(CaptureGap.UNINITIALISED)
)
ATTENTION = "encoder.layers.2.self_attn"


def row(side: Side, record_id: int, *, function: str = "aten.mm.default", line: int = 40, partner: int = -1) -> CallRow:
    """Returns a paired call, or one without counterpart when `partner` is left out."""
    paired = partner >= 0
    return CallRow(
        side=side,
        rank=0,
        session_id="session-a" if side is Side.BASELINE else "session-b",
        record_id=record_id,
        step=0,
        microbatch=0,
        phase="forward",
        level="op",
        function=function,
        file="model/attention.py",
        line=line,
        module=ATTENTION,
        stream="rank 0, step 0, micro-batch 0, forward, MainThread",
        scope=ATTENTION,
        key=f"{function} at model/attention.py:{line} in {ATTENTION}",
        status=Status.OK if paired else Status.UNALIGNED,
        correspondence=Correspondence.PAIRED if paired else Correspondence.UNDETERMINED,
        basis=Basis.UNIQUE_KEY if paired else None,
        reason=None if paired else Unpaired.UNEQUAL_BETWEEN_ANCHORS,
        partner=partner,
    )


def rows() -> list[CallRow]:
    """Returns 4 baseline and 5 candidate calls: mm 211/211, softmax 212/214 (differs), copies unpaired, bmm 213/216."""
    copy = "aten._to_copy.default"
    return [
        row(Side.BASELINE, 211, partner=211),
        differing(Side.BASELINE, 212, partner=214),
        row(Side.BASELINE, 213, function="aten.bmm.default", line=43, partner=216),
        row(Side.BASELINE, 214, function=copy, line=44),
        row(Side.CANDIDATE, 211, partner=211),
        row(Side.CANDIDATE, 213, function=copy, line=41),
        differing(Side.CANDIDATE, 214, partner=212),
        row(Side.CANDIDATE, 216, function="aten.bmm.default", line=43, partner=213),
        row(Side.CANDIDATE, 217, function=copy, line=44),
        row(Side.CANDIDATE, 218, function=copy, line=44),
    ]


def differing(side: Side, record_id: int, *, partner: int) -> CallRow:
    """Returns the softmax that parts."""
    return replace(
        row(side, record_id, function="aten._softmax.default", line=41, partner=partner),
        status=Status.DIFFERENT,
        difference_class=DifferenceClass.NARROWER_DTYPE,
        group=Group.ORIGINATES,
        slots=(LEAN, FULL),
    )
