"""The seven stages: what each asks, made of the experiment and of the results of earlier stages."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Results = Mapping[str, Any]
Fields = dict[str, Any]


@dataclass(frozen=True)
class Stage:
    """`needs`: the stages whose results `fields` takes. `writes`: whether the action makes an output.

    `fields` makes the request but for version and output; None: there is nothing to ask. `runs`: whether it runs the
    workload.
    """

    name: str
    action: str
    needs: tuple[str, ...]
    fields: Callable[[Fields, Results, Path], Fields | None]
    writes: bool = True
    runs: bool = False


def _nothing(_experiment: Fields, _results: Results, _folder: Path) -> Fields:
    return {}


def _running(experiment: Fields, workload: Fields, folder: Path) -> Fields:
    return {
        "workload": workload,
        "local_root": str(folder / "local"),
        "timeout_seconds": experiment["timeout_seconds"],
    }


def _discover(experiment: Fields, _results: Results, folder: Path) -> Fields:
    steps = {"steps": experiment["steps"]} if experiment.get("steps") else {}
    return _running(experiment, experiment["workload"], folder) | steps


def _prepare(experiment: Fields, results: Results, _folder: Path) -> Fields:
    chosen = {"configuration": experiment["configuration"]} if experiment.get("configuration") else {}
    return {"workload": experiment["workload"], "discovery": results["discover"], **chosen}


def _baseline(experiment: Fields, results: Results, folder: Path) -> Fields:
    planned = {"discovery": results["discover"], "plan": results["prepare"]}
    return _running(experiment, experiment["workload"], folder) | planned


def _candidate(experiment: Fields, results: Results, folder: Path) -> Fields:
    planned = {"discovery": results["discover"], "plan": results["prepare"]}
    return _running(experiment, experiment["workload"] | experiment["candidate"], folder) | planned


def _compare(experiment: Fields, results: Results, _folder: Path) -> Fields:
    sides = {side: results[side] for side in ("baseline", "candidate")}
    return sides | {"ranks": experiment["workload"]["ranks"]}


def _review(_experiment: Fields, results: Results, folder: Path) -> Fields | None:
    if results["compare"]["first_difference"] is None:
        return None
    return {"artifact": results["compare"], "alignment_map": str(folder / "map.json")}


def alignment_map(experiment: Fields, compared: Fields) -> Fields:
    """The review: the pair at which the runs part is one call on both sides. A person would look at it first."""
    first = compared["first_difference"]
    pair = {
        "decision": "replace" if first["region"] else "confirm",  # of a stretch of calls: its first ones, as a pair
        "rank": first["rank"],
        "baseline": first["baseline_record_id"],
        "candidate": first["candidate_record_id"],
        "reason": experiment["reason"],
    }
    return {
        "format": "paritrace-alignment-map",
        "version": "1.0",
        "artifact_sha256": compared["comparison"]["sha256"],
        "reviewer": experiment["reviewer"],
        "reason": experiment["reason"],
        "pairs": [pair],
        "slots": [],
    }


STAGES = {
    stage.name: stage
    for stage in (
        Stage("capabilities", "capabilities", (), _nothing, writes=False),
        Stage("discover", "discover", ("capabilities",), _discover, runs=True),
        Stage("prepare", "prepare", ("discover",), _prepare),
        Stage("baseline", "trace", ("discover", "prepare"), _baseline, runs=True),
        Stage("candidate", "trace", ("discover", "prepare"), _candidate, runs=True),
        Stage("compare", "compare", ("baseline", "candidate"), _compare),
        Stage("review", "align", ("compare",), _review),
    )
}
