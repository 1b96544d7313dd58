"""The two-rank workload trains as one process does: what it is a fault against has to be right itself (CP-18)."""

import re
from pathlib import Path

import pytest

from benchmarks.faults.checkouts import RANKED_WORKLOAD
from tests.cases.captures import run_python

LOSS = re.compile(r"^step \d loss (\S+) norm (\S+)$", re.MULTILINE)
# Sums over ranks are associated anew; what a fault of this suite changes is a thousand times larger.
TOLERANCE = 1e-5


def trained(*arguments: str, ranks: int) -> list[float]:
    """Losses and gradient norms of three steps without dropout."""
    launcher = ("-B", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks))
    script = Path(RANKED_WORKLOAD) / "train.py"
    done = run_python(
        *launcher, str(script), "--dropout", "0", "--steps", "3", *arguments, directory=RANKED_WORKLOAD.parent
    )
    assert done.status == 0, done.stderr
    return [float.fromhex(number) for found in LOSS.findall(done.stdout) for number in found]


@pytest.mark.slow
def test_two_ranks_train_as_one_process_does() -> None:
    alone = trained(ranks=1)
    assert len(alone) == 6
    assert trained("--tensor", "2", ranks=2) == pytest.approx(alone, rel=TOLERANCE)
    assert trained("--tensor", "2", "--sequence", ranks=2) == pytest.approx(alone, rel=TOLERANCE)
    together = trained("--batch", "8", ranks=1)
    assert together != pytest.approx(alone, rel=TOLERANCE)
    assert trained("--ddp", ranks=2) == pytest.approx(together, rel=TOLERANCE)
