"""The example of attempts: complete, partial and missing evidence, without any model call (AT-18)."""

import subprocess
import sys
from pathlib import Path

import pytest

from paritrace import attempts
from paritrace.attempts.result import Claim, Fractions
from paritrace.evidence.coverage import CoverageState

EXAMPLE = Path(__file__).parents[2] / "examples" / "attempts"
DEADLINE_SECONDS = 120


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("attempts")
    subprocess.run([sys.executable, str(EXAMPLE / "make.py"), str(folder)], check=True, timeout=DEADLINE_SECONDS)
    return folder / "manifest.json"


def test_at_18_the_example_runs_and_its_readme_tells_what_comes_out(manifest: Path) -> None:
    comparison = attempts.compare(attempts.load(manifest))
    (pair,) = comparison.pairs
    assert (pair.claim, pair.primary, pair.exploratory) == (Claim.UNDETERMINED, True, False)
    assert pair.lost == {"alpha": ("alpha-5", "alpha-6"), "beta": ("beta-7",)}
    alpha, beta = comparison.summary.configurations
    assert alpha.requests == {"result": 7, "started_only": 1}
    assert beta.requests == {"missing": 1, "result": 7}
    for one, known in ((alpha, 6), (beta, 7)):
        tokens = one.tokens["input_tokens"]
        assert (tokens.coverage.observed, tokens.coverage.expected, tokens.state) == (
            known,
            8,
            CoverageState.INCOMPLETE,
        )
        fractions = one.evaluators[0].fractions
        assert isinstance(fractions, Fractions)
        assert fractions.num_attempts == 8


def test_at_18_its_readme_names_commands_that_there_are() -> None:
    from paritrace.cli.attempts import attempts as group

    lines = (EXAMPLE / "README.md").read_text(encoding="utf-8").splitlines()
    commands = [line.split()[2] for line in lines if line.startswith("paritrace attempts")]
    assert set(commands) <= set(group.commands)
    assert len(commands) == 3
