"""Huawei's msprobe (PyPI mindstudio-probe): level L1, checksum mode `xor`, then its analysis of the first difference.

Of its modes this one did best: statistics blur small changes, and `md5` reads live memory from another thread.
"""

import json
import os
import re
import traceback
from pathlib import Path
from typing import Any

from msprobe.core.compare.find_first.analyzer import DiffAnalyzer
from msprobe.pytorch import PrecisionDebugger
from workload_runs import frames_in, train

FRAME = re.compile(r"File ([^,]+), line (\d+)")


def first_difference(job: dict[str, Any]) -> dict[str, Any]:
    place = Path(job["place"])
    baseline, candidate = (dumped_in_child(job[side], place / side) for side in ("baseline", "candidate"))
    for step in sorted(path.name for path in candidate.glob("step*") if (baseline / path.name).exists()):
        output = place / "compared" / step
        output.mkdir(parents=True)
        DiffAnalyzer(str(candidate / step), str(baseline / step), str(output)).analyze()
        for analysis in output.glob("diff_analyze*.json"):
            return told(json.loads(analysis.read_text(encoding="utf-8")), step, job)
    return {}


def told(analysis: dict[str, Any], step: str, job: dict[str, Any]) -> dict[str, Any]:
    nodes = [node for rank in analysis.values() for node in rank]
    if not nodes:
        return {}
    found = [(file, int(line)) for text in nodes[0].get("stack_info", []) for file, line in FRAME.findall(text)]
    name = str(nodes[0]["op_name"])
    return {
        "name": name,
        "step": int(step.removeprefix("step")),
        "phase": "backward" if name.endswith("backward") else "forward",
        "frames": frames_in(job["candidate"]["script"], found),
    }


def dumped_in_child(side: dict[str, Any], place: Path) -> Path:
    """The dump of one run, made by a process of its own: the tool has one debugger and one count of steps in each."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            dumped(side, place)
            status = 0
        except Exception:  # noqa: BLE001  the parent tells it
            traceback.print_exc()
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status:
        raise RuntimeError(f"a run under msprobe ended with status {status}")
    for process in place.glob("step*/proc*"):
        process.rename(process.with_name("rank0"))  # as the analysis wants the folder of one process spelled
    return place


def dumped(side: dict[str, Any], place: Path) -> None:
    """One run under the tool, as its manual has it: `start` before a step, `stop` and `step` behind it."""
    debugger = PrecisionDebugger(config_path=str(settings(place)))

    def after_step() -> None:
        debugger.stop()
        debugger.step()
        debugger.start()

    debugger.start()
    train(side, after_step=after_step)
    debugger.stop()
    debugger.step()


def settings(place: Path) -> Path:
    place.mkdir(exist_ok=True)
    statistics = {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": "xor"}
    values = {"task": "statistics", "dump_path": str(place), "rank": [], "step": [], "level": "L1"}
    path = place.with_suffix(".config.json")
    path.write_text(json.dumps({**values, "statistics": statistics}), encoding="utf-8")
    return path
