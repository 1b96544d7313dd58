"""Asks another tool about pairs of checkouts: one line of JSON in, one out. Runs in the environment of that tool.

The tool is imported once; each pair is a forked child, so that no run sees what another left behind. Imports nothing of
paritrace.
"""

import importlib
import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any

TOOLS = ("debug_mode", "msprobe_tool", "torchlens_tool")


def main() -> None:
    name = sys.argv[1]
    if name not in TOOLS:
        raise SystemExit(f"unknown tool {name}; known: {', '.join(TOOLS)}")
    tool = importlib.import_module(name)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a workload or a tool prints is no answer
    for line in sys.stdin:
        print(json.dumps(asked(tool, json.loads(line))), file=answers, flush=True)


def asked(tool: Any, job: dict[str, Any]) -> dict[str, Any]:
    """The tool's answer from a child of this process, with the seconds it took."""
    started = time.perf_counter()
    result = Path(job["place"]) / "answer.json"
    child = os.fork()
    if child == 0:
        answer_and_exit(tool, job, result)
    _, status = os.waitpid(child, 0)
    if not result.exists():
        found = {"error": f"ended with status {os.waitstatus_to_exitcode(status)}"}
    else:
        found = json.loads(result.read_text(encoding="utf-8"))
    return {**found, "seconds": time.perf_counter() - started}


def answer_and_exit(tool: Any, job: dict[str, Any], result: Path) -> None:
    os.dup2(os.open(Path(job["place"]) / "log.txt", os.O_CREAT | os.O_WRONLY), 2)
    os.dup2(2, 1)
    status = 1
    try:
        found = tool.first_difference(job)
        result.write_text(json.dumps(found), encoding="utf-8")
        status = 0
    except (Exception, SystemExit) as error:  # noqa: BLE001  a failure of the tool is its answer
        traceback.print_exc()
        lines = str(error).strip().splitlines()
        words = f"{type(error).__name__}: {lines[0] if lines else ''}"
        result.write_text(json.dumps({"error": words[:200]}), encoding="utf-8")
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    main()
