"""Running the code blocks of a document, in order and in one folder, as a reader would."""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from benchmarks import warm
from tests.house.documents import Block

BLOCK_SECONDS = 300  # far above the slowest block (two captures of a small model) on a loaded machine
SHELL = ("bash", "-euo", "pipefail", "-c")
COMMANDS = {"paritrace": "paritrace", "paritrace-tools": "paritrace.automation", "torchrun": "torch.distributed.run"}
LEFT_OUT = "..."


def run_document(blocks: Iterable[Block], folder: Path, *, python: str = sys.executable) -> int:
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
            printed = _run(block, language, folder=folder, python=python)
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


def _run(block: Block, language: str, *, folder: Path, python: str) -> str:
    interpreter = {"sh": SHELL, "python": (python, "-c")}[language]
    with tempfile.TemporaryDirectory() as commands:
        for name, module in COMMANDS.items():
            path = Path(commands, name)
            path.write_text(f'#!/bin/sh\nexec {shlex.quote(python)} -m {module} "$@"\n', encoding="utf-8")
            path.chmod(0o755)
        places = (commands, str(Path(python).parent), os.environ["PATH"])
        environment = warm.environment(PATH=os.pathsep.join(places))
        return _printed([*interpreter, block.text], block, folder=folder, environment=environment)


def _printed(command: list[str], block: Block, *, folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env={name: value for name, value in environment.items() if not name.startswith("PARITRACE_")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=BLOCK_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"line {block.line}: status {done.returncode}\n{block.text}\n{done.stdout}"
    return done.stdout
