"""What a journal says of its own capture, in words (CA-36, CA-2)."""

from msgspec import structs

from paritrace.evidence.allocator import MemoryScope, OutOfAcceleratorMemory
from paritrace.evidence.blackbox import BlackBox, Cause, Trigger
from paritrace.evidence.calls import EndMark, Level, LevelMark
from paritrace.evidence.gaps import Gap, ResourceGap
from paritrace.evidence.remarks import MAX_TRIGGERS, Remarks, of_ranks

BOX = BlackBox(20, 1 << 28, "rules", (0, 1), 8, "mesh dp=4,tp=2")
END = EndMark(0, 0, 0, 0, {})
LOST = "no end was written: what the black box held by then is not in the run"


def trigger(cause: Cause, *, step: int = 37, steps: tuple[int, ...] = (35, 36, 37), dropped: int = 0) -> Trigger:
    return Trigger(step, cause, "loss 0", "0x1.8p+1", "0x1.0p+0", steps, 9, 0, dropped)


def lines(*records: object) -> tuple[str, ...]:
    remarks = Remarks()
    for record in records:
        remarks.see(record)
    return remarks.lines()


def test_a_capture_without_black_box_and_budget_says_nothing() -> None:
    assert lines(LevelMark(0, (Level.DIGEST,), "begin"), LevelMark(3, (Level.DIGEST,), "steps"), END) == ()


def test_a_box_says_which_ranks_record_operators_and_why() -> None:
    head, rest = lines(BOX, END)
    assert head == "black box: last 20 steps; level op at steps 0, 1, 2, 4, 8 … on rank 0-1 of 8 (mesh dp=4,tp=2)"
    assert rest == "nothing made the black box be written"


def test_a_trigger_says_its_figure_its_threshold_and_its_steps() -> None:
    told = lines(BOX, trigger(Cause.LOSS_OUTLIER, dropped=7), END)[1]
    assert told == (
        "black box written at step 37: loss outlier (loss 0 3, above 1); holds step 35-37; 7 rows did not fit into it"
    )
    assert "no steps were waiting" in lines(BOX, trigger(Cause.USER, steps=()), END)[1]


def test_a_box_without_an_end_is_lost_unless_it_was_written_for_the_end() -> None:
    assert LOST in lines(BOX)
    assert LOST in lines(BOX, trigger(Cause.LOSS_OUTLIER))
    assert LOST not in lines(BOX, trigger(Cause.SIGTERM))
    assert LOST not in lines(BOX, END)


def test_a_level_that_was_given_up_is_told_with_its_reason() -> None:
    assert lines(LevelMark(4, (Level.DIGEST,), "lag: the writer was 12 s behind")) == (
        "from step 4 on, lag: the writer was 12 s behind",
    )


def test_many_triggers_are_counted_and_those_that_cannot_fire_are_named() -> None:
    many = [trigger(Cause.USER, step=step) for step in range(MAX_TRIGGERS + 3)]
    cannot = BlackBox(20, 1, "rules", (), 1, "one rank", ("sigterm: why",))
    told = lines(cannot, *many, END)
    assert "and 3 more triggers" in told
    assert told[-1] == "no trigger: sigterm: why"
    assert "on no captured rank" in told[0]


def test_of_ranks_each_line_stands_once() -> None:
    assert of_ranks({0: ("same", "one"), 1: ("same",), 2: ("same", "one", "one")}) == ("same", "rank 0, 2: one")
    assert of_ranks({}) == ()


def test_rs12_a_failed_allocation_says_who_holds_the_memory_and_many_are_cut() -> None:
    failure = OutOfAcceleratorMemory(
        step=12,
        module="layers.3.mlp",
        device="cuda:0",
        requested_bytes=2 << 30,
        free_bytes=1 << 20,
        total_bytes=80 << 30,
        reserved_bytes=Gap(ResourceGap.NO_COUNTER),
        allocated_bytes=5,
        inactive_bytes=0,
        held_bytes={MemoryScope.PARAMETERS: 3 << 30, MemoryScope.GRADIENTS: 0, MemoryScope.OTHER: 1 << 19},
        live_blocks=2,
        largest=(),
    )
    (line,) = lines(failure, END)
    assert line == (
        "out of accelerator memory at step 12 in layers.3.mlp: 2,048.0 MiB asked for, 1.0 MiB of 81,920.0 MiB free on "
        "cuda:0; held: parameters 3,072.0 MiB, other 0.5 MiB"
    )
    assert lines(*[failure] * 15, END)[-1] == "and 3 more failed allocations"
    assert "held: nothing" in lines(structs.replace(failure, module="", held_bytes={}), END)[0]
