"""Folders of evidence for the tests of importers: real files beside synthetic ones."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from paritrace.attempts.importers.importing import import_attempts
from paritrace.attempts.manifest import Attempt, Manifest

DATA = Path(__file__).parents[2] / "data" / "attempts"
INSPECT_A, INSPECT_B = DATA / "inspect" / "inspect-a-errors.eval", DATA / "inspect" / "inspect-b-errors.json"
ALPHA = DATA / "harbor" / "alpha"


def manifest_of(tool: str, *paths: Path, base: Path = DATA) -> Manifest:
    return import_attempts(tool, paths, base=base).manifest


def refused_of(tool: str, *paths: Path, base: Path = DATA) -> list[str]:
    return [str(refusal) for refusal in import_attempts(tool, paths, base=base).refusals]


def verdicts(manifest: Manifest) -> Counter[str]:
    """Attempts by what is known of them: the verdict that counts, else how they ended, else missing."""
    return Counter(_known(attempt) for attempt in manifest.attempts)


def _known(attempt: Attempt) -> str:
    if not attempt.present:
        return "missing"
    counting = [one.verdict.value for one in attempt.evaluations if one.counts]
    return counting[0] if counting else f"execution {attempt.execution.value}"


def written(path: Path, document: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))
    return path


def inspect_log(samples: Sequence[Mapping[str, object]], **changes: object) -> dict[str, object]:
    """A small Inspect log, synthetic."""
    spec: dict[str, object] = {
        "task": "sums",
        "task_id": "T1",
        "run_id": "R1",
        "created": "2026-01-01T00:00:00+00:00",
        "model": "mockllm/model",
        "dataset": {"sample_ids": ["s1", "s2"]},
        "config": {"epochs": 1},
    }
    return {"version": 2, "status": "success", "eval": spec | changes, "samples": list(samples)}


def inspect_sample(name: str, **changes: object) -> dict[str, object]:
    plain: dict[str, object] = {"id": name, "epoch": 1, "uuid": f"u-{name}", "scores": {"match": {"value": "C"}}}
    return plain | changes
