"""Two captures of one script agree in everything, also where tensors were allocated and not yet written (CP-13)."""

import subprocess
from pathlib import Path

import pytest

from benchmarks import warm

SCRIPT = """
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 2)  # allocates with empty, then fills
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    model(torch.randn(3, 4)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def paritrace(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [warm.python(), "-m", "paritrace", *arguments],
        cwd=folder,
        env=warm.environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.slow
def test_exit_code_of_identical_runs_is_zero(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    for run in ("a", "b"):
        options = ("--level", "module", "--level", "op", "--steps", "0:2")
        assert paritrace("run", "-o", run, *options, "train.py", folder=tmp_path).returncode == 0
    compared = paritrace("compare", "a", "b", "--exit-code", folder=tmp_path)
    assert compared.returncode == 0, compared.stdout
    assert ", 0 differ, 0 not comparable" in compared.stdout
