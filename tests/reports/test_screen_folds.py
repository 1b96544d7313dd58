"""Runs of unlike layouts on the first screen and behind it (CP-12, CP-29, A-15)."""

from msgspec.structs import replace

from paritrace.compare.folds_result import FoldCount, FoldedSlot, FoldedState, Folds, FoldStatus, RatioFact
from paritrace.compare.result import Comparison, Mark
from paritrace.reports.explained import behind
from paritrace.reports.first_screen import first_screen
from tests.conftest import Golden
from tests.reports import comparisons
from tests.reports.test_first_screen import assert_within_bounds

WRONG = FoldedState(
    step=0,
    moment="begin",
    group="parameter",
    name="blocks.0.qkv.weight",
    status=FoldStatus.DIFFERS,
    parts=(1, 2),
    facts=("candidate: the shards on ranks 0 and 1 are equal (as when one is loaded twice)",),
)
SLOT = FoldedSlot(
    step=0,
    microbatch=0,
    phase="forward",
    module="blocks.3.mlp",
    nth=0,
    slot="out",
    ranks=((0,), (0, 1)),
    norm_error=1.2e-07,
    mean_error=3e-09,
    range_error=0.0,
    sample_error=2.4e-07,
    num_samples=64,
)
FACT = RatioFact(
    figure="loss",
    ratio=8,
    larger="candidate",
    values=16,
    of_values=16,
    first_step=0,
    text="ratio 8 = 4 x 2 observed (4 ranks, 2 micro-batches); no attribution",
)


def unlike(*, wrong: bool = False) -> Comparison:
    """A run in one process against one on two ranks."""
    agree = 11 if wrong else 12
    folds = Folds(
        why=("world sizes 1 and 2",),
        scheme="elements-u64",
        incarnations=(0, 0),
        ranks=((0,), (0, 1)),
        world_sizes=(1, 2),
        counts=(
            FoldCount(0, "begin", "parameter", agree, 12 - agree, 0, (1, 2)),
            FoldCount(0, "batch", "batch", 2, 0, 0, (1, 2)),
            FoldCount(0, "grads", "gradient", 3, 8, 1, (1, 2)),
            FoldCount(1, "begin", "parameter", 5, 7, 0, (1, 2)),
            FoldCount(1, "batch", "batch", 2, 0, 0, (1, 2)),
        ),
        states=(WRONG,) if wrong else (),
        num_slots=48,
        slots=(SLOT,),
        slots_not_compared={"shape": 4, "one_side_only": 6},
        declared=("--dims blocks.*.qkv.weight=tp:0",),
    )
    marks = dict.fromkeys(("forward", "loss", "backward", "grad norm", "optimizer", "weights+1"), Mark.UNDETERMINED)
    weights = {"weights": Mark.BEYOND} if wrong else {}
    return replace(comparisons.agreeing(), folds=folds, ladder=comparisons.ladder() | marks | weights, ratios=(FACT,))


def test_the_screen_of_unlike_layouts(golden: Golden) -> None:
    screen = first_screen(unlike())
    assert_within_bounds(screen)
    golden("first_screen/unlike_layouts.txt", screen)


def test_the_screen_of_a_shard_loaded_twice(golden: Golden) -> None:
    screen = first_screen(unlike(wrong=True))
    assert_within_bounds(screen)
    golden("first_screen/shard_loaded_twice.txt", screen)


def test_gradients_that_differ_first_leave_weights_of_later_steps_unnamed() -> None:
    """Weights made from gradients of another order of reduction are no wrong loads."""
    assert "differs at step" not in first_screen(unlike())


def test_explain_lists_counts_states_and_errors() -> None:
    found = behind(unlike(wrong=True), "folds")
    assert "step 0, begin: weights 11 of 12 agree, 1 differ, 0 not checkable; parts 1 and 2" in found.facts
    assert any("blocks.0.qkv.weight differs" in fact for fact in found.facts)
    assert any("blocks.3.mlp out: norm 1.2e-07" in fact for fact in found.facts)
    assert "declared: --dims blocks.*.qkv.weight=tp:0" in found.facts
    assert "16 of 16 values" in behind(unlike(), "ratios").facts[0]
    assert not behind(comparisons.agreeing(), "folds").facts


def test_ranks_of_one_side_that_were_folded_are_not_called_unseen() -> None:
    """The ranks of unlike layouts are no counterparts; what no fold used is still named (CP-9, CP-12)."""
    folded = replace(unlike(), ranks_missing=(1,))
    assert "on one side only" not in first_screen(folded)
    assert not any("one side only" in fact for fact in behind(folded, "not_seen").facts)
    more = replace(unlike(), ranks_missing=(1, 2))
    assert "on one side only: rank 2" in first_screen(more)
    assert "rank 2 is on one side only" in behind(more, "not_seen").facts
