"""Running the code blocks of a document, in order and in one folder, as a reader would."""

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.house.documents import ROOT, Block

BLOCK_SECONDS = 300  # far above the slowest block (two captures of a small model) on a loaded machine
INTERPRETERS = {"sh": ["bash", "-euo", "pipefail", "-c"], "python": [sys.executable, "-c"]}
LEFT_OUT = "..."


def run_document(blocks: Iterable[Block], folder: Path) -> int:
    """Write `file=` blocks, run `run` blocks, compare `output` blocks with the run before them; return their number."""
    printed, num_runs = "", 0
    for block in blocks:
        language, *words = block.words or ("",)
        for word in words:
            if word.startswith("file="):
                target = folder / word.removeprefix("file=")
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(block.text, encoding="utf-8")
        if "run" in words:
            printed = _run(INTERPRETERS[language], block, folder=folder)
            num_runs += 1
        if "output" in words:
            assert says(block.text, printed), (
                f"line {block.line}: the document says\n{block.text}\nbut this is printed:\n{printed}"
            )
    return num_runs


def says(expected: str, printed: str) -> bool:
    """Whether `printed` is what the document shows: `...` stands for any text, on a line of its own for any lines."""
    pattern = "".join(
        r"(?:.*\n)*" if line.strip() == LEFT_OUT else _line_pattern(line) + r"[ \t]*\n"
        for line in expected.splitlines()
    )
    return re.fullmatch(pattern, printed if printed.endswith("\n") else printed + "\n") is not None


def _line_pattern(line: str) -> str:
    parts = (r"[ \t]+".join(re.escape(word) for word in re.split(r"[ \t]+", part)) for part in line.split(LEFT_OUT))
    return ".*".join(parts)


def _run(interpreter: list[str], block: Block, *, folder: Path) -> str:
    binaries = Path(sys.executable).parent
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PARITRACE_")},
        "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [*interpreter, block.text],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=BLOCK_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"line {block.line}: status {done.returncode}\n{block.text}\n{done.stdout}"
    return done.stdout
