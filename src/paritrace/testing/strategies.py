"""Hypothesis strategies for records of the journal of calls, whole journals and damaged ones."""

from hypothesis import strategies as st

from paritrace.evidence import calls, codec
from paritrace.evidence.allocator import LiveBlock, MemoryScope, OutOfAcceleratorMemory
from paritrace.evidence.blackbox import BlackBox, Cause, Trigger
from paritrace.evidence.calls import (
    Call,
    Completed,
    Counts,
    Detail,
    JournalHeader,
    Level,
    Moments,
    Name,
    Row,
    Site,
    Slot,
    SourceKind,
    State,
)
from paritrace.evidence.codec import Record
from paritrace.evidence.distributed import Collective, CollectiveCounts, Group, Mesh, Placement, Replicated
from paritrace.evidence.gaps import CaptureGap, Gap, ResourceGap

HEADER = JournalHeader(
    format=calls.FORMAT,
    version=calls.VERSION,
    session_id="rank-0",
    rank=0,
    incarnation=0,
    started_unix_ns=1_764_400_000_000_000_000,
    levels=(Level.MODULE, Level.OP),
    schemes={"bits": "xxh3-64", "elements": "elements-u64"},
    regions=1,
)

A_CALL = Call(
    id=1,
    left=2,
    parent=-1,
    function=0,
    site=0,
    workload_site=0,
    scope=0,
    context=0,
    thread=0,
    flags=0,
    link=-1,
    node=-1,
    scalars=-1,
    start_ns=1_000,
    duration_ns=50,
    inputs=(Slot(1, 2, "0" * 16, (3, 4)),),
    outputs=(Slot(5, 6, Gap(CaptureGap.IN_FLIGHT)),),
)

texts = st.text(alphabet=st.characters(codec="utf-8"), max_size=12)
ids = st.integers(min_value=-1, max_value=2**40)
finite = st.none() | st.floats(allow_nan=False, allow_infinity=False)
hashes = st.integers(min_value=0, max_value=2**64 - 1).map("{:016x}".format)
bits = hashes | st.builds(Gap, st.sampled_from(CaptureGap), st.none() | texts)
sources = ids | st.tuples(ids, ids)

slots = st.builds(Slot, name=ids, kind=ids, bits=bits, source=sources)
slot_lists = st.lists(slots, max_size=3).map(tuple)
moments = st.builds(Moments, finite, finite, finite, finite, finite)
counts = st.builds(Counts, *[st.integers(0, 2**40)] * 7)

call_rows = st.builds(Call, *[ids] * 15, slot_lists, slot_lists)
detail_rows = st.builds(
    Detail,
    call=ids,
    side=st.sampled_from("io"),
    slot=st.integers(0, 9),
    bits=hashes,
    xor=texts,
    regions=hashes,
    elements=hashes,
    moments=st.none() | moments,
    counts=st.none() | counts,
    samples=texts,
    degenerate=st.booleans(),
    semantics=st.none() | texts,
)
state_rows = st.builds(
    State, step=ids, microbatch=ids, moment=texts, names=ids, values=st.lists(bits, max_size=3).map(tuple)
)
names = st.builds(Name, id=ids, text=texts)
sites = st.builds(
    Site,
    id=ids,
    kind=st.sampled_from(SourceKind),
    file=texts,
    line=ids,
    column=ids,
    function=texts,
    digest=hashes,
    path=texts,
)
completed_rows = st.builds(Completed, call=ids, by=texts, at_ns=ids, bits=st.lists(bits, max_size=3).map(tuple))
text_lists = st.lists(texts, max_size=3).map(tuple)
id_lists = st.lists(ids, max_size=3).map(tuple)
distributed = st.one_of(
    st.builds(Group, id=ids, key=texts, ranks=id_lists, backend=texts, label=texts),
    st.builds(Mesh, id=ids, dims=text_lists, shape=id_lists, coordinate=id_lists, basis=texts, groups=id_lists),
    st.builds(Placement, kind=ids, mesh=ids, placements=text_lists, shape=id_lists, offset=id_lists),
    st.builds(Replicated, group=ids, names=text_lists, basis=texts, left_out=text_lists),
    st.builds(
        Collective,
        call=ids,
        group=ids,
        operation=texts,
        ordinal=ids,
        reduce=texts,
        root=ids,
        peer=ids,
        asynchronous=st.booleans(),
        parameters=text_lists,
    ),
    st.builds(CollectiveCounts, step=ids, counts=st.dictionaries(texts, ids, max_size=3)),
)
black_boxes = st.builds(
    BlackBox,
    steps=ids,
    num_bytes=ids,
    rules=texts,
    window_ranks=id_lists,
    world_size=ids,
    basis=texts,
    not_watched=text_lists,
) | st.builds(
    Trigger,
    step=ids,
    cause=st.sampled_from(Cause),
    detail=texts,
    value=texts,
    threshold=texts,
    steps=id_lists,
    rows=ids,
    dropped_steps=ids,
    dropped_rows=ids,
)
memory_figures = ids | st.builds(Gap, gap=st.just(ResourceGap.NO_COUNTER), detail=texts)
memory_failures = st.builds(
    OutOfAcceleratorMemory,
    step=ids,
    module=texts,
    device=texts,
    requested_bytes=ids,
    free_bytes=ids,
    total_bytes=ids,
    reserved_bytes=memory_figures,
    allocated_bytes=memory_figures,
    inactive_bytes=memory_figures,
    held_bytes=st.dictionaries(st.sampled_from(MemoryScope), ids),
    live_blocks=ids,
    largest=st.lists(
        st.builds(LiveBlock, num_bytes=ids, scope=st.sampled_from(MemoryScope), name=texts), max_size=3
    ).map(tuple),
)
records = (
    call_rows | detail_rows | state_rows | completed_rows | names | sites | distributed | black_boxes | memory_failures
)


def line_of(record: Record) -> bytes:
    """Return a record as the line that our writers write."""
    if isinstance(record, Row):
        return codec.encode_row(record)
    return codec.encode_mark(record)


journals = st.lists(records, max_size=12).map(lambda found: b"".join(map(line_of, (HEADER, *found))))


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Draw a journal in which bytes were flipped, cut out, cut off, or put in."""
    data = bytearray(draw(journals))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        match draw(st.sampled_from(("flip", "cut", "truncate", "insert"))):
            case "flip" if at < len(data):
                data[at] ^= draw(st.integers(1, 255))
            case "cut":
                del data[at : at + draw(st.integers(1, 40))]
            case "truncate":
                del data[at:]
            case _:
                data[at:at] = draw(
                    st.sampled_from((b"\n", b"\0\0\0", b"\r\n", b"{}", b'{"a":1}', b"\xff", b"[", b"\n\n"))
                )
    return bytes(data)
