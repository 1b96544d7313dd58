"""N-17: one moved call among a thousand costs one pair, not a thousand (CP-3)."""

from pathlib import Path

import pytest

from paritrace.compare.result import Group
from tests.cases.captures import compare, run_captured, write_script

CALLS = 1000


def script_text(*, moved: bool) -> str:
    lines = [f"out.append(x + {index}.5)" for index in range(CALLS)]
    if moved:
        lines = [*lines[1:], lines[0]]
    return "\n".join(("import torch", "", "x = torch.arange(4.0)", "out = []", *lines, "print(len(out))", ""))


@pytest.mark.slow
def test_one_moved_call_costs_one_pair(tmp_path: Path) -> None:
    for side, moved in (("a", False), ("b", True)):
        script = write_script(tmp_path / side / "train.py", script_text(moved=moved))
        done = run_captured(script, tmp_path / side / "run", levels=("op",))
        assert done.status == 0, done.stderr
    result = compare(tmp_path / "a" / "run", tmp_path / "b" / "run")
    counts = result.counts
    assert counts.calls_baseline >= CALLS
    assert counts.undetermined_baseline + counts.reordered <= 1
    assert counts.undetermined_candidate + counts.reordered <= 1
    assert counts.paired >= CALLS - 1
    assert counts.different == 0
    assert [found for found in result.origins if found.group is Group.ORIGINATES] == []
