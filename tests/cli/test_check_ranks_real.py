"""`paritrace check` on real gloo ranks: a good DDP run fails nothing, a fault is told with ranks and step (CP-25)."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from paritrace.compare.checks_result import Checked, Invariant, Outcome
from tests.cases.captures import run_python

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).with_name("ranked_training.py")
Checking = Callable[..., tuple[dict[str, Invariant], str]]


@pytest.fixture(scope="module")
def checking(tmp_path_factory: pytest.TempPathFactory) -> Checking:
    """Captures a training once for each fault; returns its invariants across ranks, and the screen."""
    known: dict[str, tuple[dict[str, Invariant], str]] = {}

    def check(fault: str, *, ranks: int = 2) -> tuple[dict[str, Invariant], str]:
        if fault not in known:
            place = tmp_path_factory.mktemp("ranks")
            launch = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks))
            options = ("-o", str(place / "run"), "--level", "op", "--steps", "0:3", str(SCRIPT), fault)
            done = run_python(*launch, "-m", "paritrace", "run", *options, directory=place)
            assert done.status == 0, done.stderr
            document = run_python("-m", "paritrace", "check", str(place / "run"), "--json", directory=place)
            screen = run_python("-m", "paritrace", "check", str(place / "run"), directory=place)
            checked = msgspec.json.decode(document.stdout, type=Checked)
            known[fault] = ({one.id: one for one in checked.invariants if one.rank < 0}, screen.stdout)
        return known[fault]

    return check


def test_cp25_a_good_ddp_run_fails_nothing(checking: Checking) -> None:
    found, screen = checking("none")
    assert not [one for one in found.values() if one.status is Outcome.FAIL]
    for identity in ("replicas.parameters", "replicas.gradients", "replicas.optimizer_state", "batches.across_ranks"):
        assert found[identity].status is Outcome.PASS
        assert found[identity].evidence.ranks == (0, 1)
    for identity in ("collectives.match", "collectives.completed", "collectives.results"):
        assert found[identity].status is Outcome.PASS
    assert any("ddp over group world" in fact for fact in found["replicas.gradients"].evidence.facts)
    assert "No invariant that could be checked fails" in screen


def test_cp25_a_gradient_that_is_not_reduced_is_the_first_sentence(checking: Checking) -> None:
    found, screen = checking("not reduced")
    assert (found["replicas.gradients"].step, found["replicas.gradients"].evidence.names) == (0, ("3.weight",))
    assert (found["replicas.parameters"].step, found["replicas.parameters"].evidence.names) == (1, ("3.weight",))
    told = " ".join(screen.split())
    assert told.startswith(
        "[check] Gradient of 3.weight differs between ranks 0 and 1 at step 0, before the optimizer; "
        "the parameter itself and its optimizer state from step 1 on."
    )


def test_cp25_a_batch_that_both_ranks_have_is_told_with_its_step(checking: Checking) -> None:
    found, _ = checking("not reduced")
    assert (found["batches.across_ranks"].status, found["batches.across_ranks"].step) == (Outcome.FAIL, 2)


def test_cp25_a_reduction_over_pairs_is_told_with_its_sides(checking: Checking) -> None:
    found, screen = checking("wrong group", ranks=4)
    (parting,) = found["replicas.gradients"].evidence.partings
    assert (parting.name, parting.step, parting.sides) == ("3.weight", 0, ((0, 1), (2, 3)))
    assert found["collectives.match"].status is Outcome.PASS  # each group for itself is in order
    assert "between ranks 0,1 and ranks 2,3 at step 0" in " ".join(screen.split())
