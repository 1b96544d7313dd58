"""FSDP2, tensor parallel and DDP on two real ranks against one process, related by fold (CA-8, CP-12)."""

import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from benchmarks import warm
from paritrace.compare.engine import compare
from paritrace.compare.folds_dims import parse_dims
from paritrace.compare.folds_result import FoldedState, Folds, FoldStatus
from paritrace.compare.result import Comparison, Mark
from paritrace.compare.settings import Settings
from paritrace.reports.first_screen import first_screen
from paritrace.runs.reading import open_run
from tests.compare import folded_training

pytest.importorskip("torch")
pytestmark = pytest.mark.slow

SCRIPT = Path(folded_training.__file__)
ROOT = Path(__file__).parents[2]
DEADLINE_SECONDS = 300  # both launches take some twenty seconds alone; the machine may be busy
LAYOUTS = (
    "fsdp",
    "tp",
    "ddp",
    "fsdp-perturbed",
    "fsdp-swapped",
    "fsdp-twice",
    "tp-perturbed",
    "tp-swapped",
    "tp-twice",
)
ROUND_OFF = 2.0**-8  # one layer works in bfloat16
PARAMETERS = 14  # the tied one under both of its names

Compared = Callable[..., Comparison]


def launched(folder: Path, *command: str) -> None:
    done = subprocess.run(
        [warm.python(), *command],
        cwd=folder,
        env=warm.environment(),
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Compared:
    """Compares two of the runs; everything is captured once."""
    folder = tmp_path_factory.mktemp("folds")
    launched(folder, str(SCRIPT), str(folder), "one")
    torchrun = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    launched(folder, *torchrun, str(SCRIPT), str(folder), *LAYOUTS)

    @cache
    def of(baseline: str, candidate: str, *dims: str, strip: str = "") -> Comparison:
        settings = Settings(dims=tuple(map(parse_dims, dims)), strip_prefix=(strip,) if strip else ())
        return compare(open_run(folder / baseline), open_run(folder / candidate), settings).result

    return of


def folds_of(comparison: Comparison) -> Folds:
    assert comparison.folds is not None
    return comparison.folds


def agreeing(folds: Folds, step: int, group: str) -> tuple[int, int]:
    (count,) = [one for one in folds.counts if (one.step, one.group) == (step, group)]
    return count.agree, count.total


def weight(folds: Folds) -> FoldedState:
    """The only parameter that does not agree at step 0."""
    (state,) = [one for one in folds.states if (one.step, one.group) == (0, "parameter")]
    assert (state.name, state.status) == ("up.weight", FoldStatus.DIFFERS)
    return state


@pytest.mark.parametrize("layout", ["fsdp", "tp", "ddp"])
def test_cp12_weights_inputs_and_loads_agree_with_one_process(compared: Compared, layout: str) -> None:
    """Uneven and empty shards, bfloat16, biases and a tied weight among them."""
    comparison = compared("one", layout, strip="module.")
    folds = folds_of(comparison)
    assert folds.why == ("world sizes 1 and 2",)
    assert agreeing(folds, 0, "parameter") == (PARAMETERS, PARAMETERS)
    assert [agreeing(folds, step, "batch") for step in (0, 1)] == [(1, 1), (1, 1)]
    assert comparison.ladder["weights"] is comparison.ladder["data"] is Mark.AGREES


@pytest.mark.parametrize("layout", ["fsdp", "tp", "ddp"])
def test_cp12_bits_that_differ_between_unlike_layouts_are_no_finding(compared: Compared, layout: str) -> None:
    """Gradients are reduced in another order; what follows from them is undetermined, never a difference."""
    comparison = compared("one", layout, strip="module.")
    assert not comparison.findings
    assert not comparison.outside
    assert comparison.first_difference is None
    assert comparison.counts.different == 0
    around = {"code", "config"}
    assert not {rung for rung, mark in comparison.ladder.items() if mark is Mark.BEYOND} - around
    assert {comparison.ladder[rung] for rung in ("forward", "backward", "optimizer", "weights+1")} == {
        Mark.UNDETERMINED
    }


def test_cp12_fsdp_against_ddp_agrees_in_everything(compared: Compared) -> None:
    """One world size, other placements: reductions of two ranks give the same bits, so weights agree to the end."""
    comparison = compared("fsdp", "ddp", strip="module.")
    folds = folds_of(comparison)
    assert folds.why[0].startswith("placements of 14 parameters")
    assert all(count.agree == count.total for count in folds.counts)
    assert {count.group for count in folds.counts} >= {"parameter", "gradient", "optimizer_state", "batch"}
    assert not comparison.findings
    assert comparison.ladder["weights+1"] is comparison.ladder["reduced grads"] is Mark.AGREES


def test_cp12_tensor_parallel_against_data_parallel(compared: Compared) -> None:
    """Both have two ranks, and rank 0 of the one is no counterpart of rank 0 of the other."""
    comparison = compared("tp", "ddp", strip="module.")
    folds = folds_of(comparison)
    assert agreeing(folds, 0, "parameter") == (PARAMETERS, PARAMETERS)
    assert agreeing(folds, 0, "batch") == (1, 1)
    assert not comparison.findings
    (batch,) = [state for state in folds.states if (state.step, state.group) == (0, "batch")]
    assert batch.facts == ("baseline: every part is there 2 times, alike on its ranks",)
    assert folds.num_slots == 0
    assert folds.slots_not_compared["other_batch"] > 0


@pytest.mark.parametrize("layout", ["fsdp", "tp"])
def test_cp12_a_wrong_shard_is_found_and_its_rank_named_by_samples(compared: Compared, layout: str) -> None:
    comparison = compared("one", f"{layout}-perturbed")
    found = weight(folds_of(comparison))
    assert found.parts == (1, 2)
    assert "candidate: all of them on rank 1 (32 of its 32)" in found.facts
    assert comparison.ladder["weights"] is Mark.BEYOND
    assert comparison.ladder_step == 0


@pytest.mark.parametrize("layout", ["fsdp", "tp"])
def test_cp12_a_shard_loaded_twice_is_found(compared: Compared, layout: str) -> None:
    found = weight(folds_of(compared("one", f"{layout}-twice")))
    assert "candidate: the shards on ranks 0 and 1 are equal (as when one is loaded twice)" in found.facts
    assert "candidate: all of them on rank 1 (32 of its 32)" in found.facts


@pytest.mark.parametrize("layout", ["fsdp", "tp"])
def test_cp12_rows_swapped_inside_a_shard_are_found_where_their_order_was_read(compared: Compared, layout: str) -> None:
    """The sums agree; what the module read at logical indices does not."""
    found = weight(folds_of(compared("one", f"{layout}-swapped")))
    assert found.facts[0] == "the elements agree and their order does not"
    assert any(fact.startswith("candidate: all of them on rank 1") for fact in found.facts)


def test_cp12_the_other_runs_shards_show_which_one_is_wrong(compared: Compared) -> None:
    """Alike in layout: rank by rank, without folds. Declared: the fold compares part by part."""
    assert compared("fsdp", "fsdp-perturbed").folds is None
    found = weight(folds_of(compared("fsdp", "fsdp-perturbed", "no.such.parameter=R")))
    assert "the candidate's part on rank 1 differs from the baseline's on rank 1" in found.facts


def test_cp12_activations_are_compared_by_moments_and_samples_not_by_bits(compared: Compared) -> None:
    """Every module's output and gradient; the errors are those of round-off, and no verdict is given."""
    comparison = compared("one", "tp")
    folds = folds_of(comparison)
    assert folds.num_slots == 2 * 9 * folded_training.STEPS
    assert not folds.slots_not_compared
    errors = [(slot.norm_error, slot.sample_error) for slot in folds.slots if slot.step == 0]
    assert all(norm is None or norm < ROUND_OFF for norm, _ in errors)
    assert all(sampled is not None and sampled < 4 * ROUND_OFF for _, sampled in errors)
    assert any(norm or sampled for norm, sampled in errors)
    pending = [slot for slot in folds.slots if slot.norm_error is None]
    assert {(slot.module, slot.slot) for slot in pending} == {("down", "out")}  # P(sum): its terms add, squares do not
    assert all(slot.mean_error is not None and slot.mean_error < ROUND_OFF for slot in pending)
    assert comparison.verdict == "not_evaluated"
    assert comparison.ladder["forward"] is Mark.UNDETERMINED


def test_cp12_halves_of_a_batch_join_only_where_that_is_declared(compared: Compared) -> None:
    """The loss is a mean over each rank's half: gradients of activations are twice those of the whole batch."""
    undeclared = folds_of(compared("one", "fsdp"))
    assert undeclared.num_slots == 0
    declared = folds_of(compared("one", "fsdp", "*/*=dp:0"))
    assert declared.declared == ("--dims */*=dp:0",)
    assert declared.num_slots == 2 * 9 * folded_training.STEPS
    outputs = [slot for slot in declared.slots if (slot.step, slot.phase) == (0, "forward")]
    assert outputs
    assert all(slot.norm_error is not None and slot.norm_error < ROUND_OFF for slot in outputs)
    gradients = [slot for slot in declared.slots if (slot.step, slot.phase) == (0, "backward")]
    assert {slot.ratio and round(slot.ratio, 3) for slot in gradients} == {2.0}


def test_cp29_the_first_screen_says_what_agrees_over_how_many_shards(compared: Compared) -> None:
    screen = first_screen(compared("one", "fsdp"))
    assert "weights 14 of 14 agree by fold over 2 shards (elements-u64), step 0" in screen
    wrong = first_screen(compared("one", "fsdp-twice"))
    assert "the shards on ranks 0 and 1 are equal" in wrong
    assert all(len(line) <= 100 for line in (screen + wrong).splitlines())
