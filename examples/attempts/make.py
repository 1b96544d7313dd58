"""Writes a small manifest of attempts with made-up evidence: complete, partial and missing. No model is called.

python make.py FOLDER
"""

import json
import sys
from hashlib import sha256
from pathlib import Path

TASKS = 8
PASSED = {"alpha": (0, 1, 2, 4), "beta": (0, 1, 2, 3, 4, 5, 6)}
LOST = {("alpha", 5): "result", ("alpha", 6): "started", ("beta", 7): "planned"}  # (configuration, task): what is there


def main(folder: Path) -> None:
    """Write the evidence and the manifest that names it."""
    folder.mkdir(parents=True, exist_ok=True)
    sources: list[dict[str, object]] = []
    attempts = [attempt(folder, name, task, sources) for name in PASSED for task in range(TASKS)]
    document = {
        "format": "paritrace-attempts",
        "version": "1.0",
        "sources": sources,
        "configurations": [{"id": name, "attempts_complete": True, "relation": "independent"} for name in PASSED],
        "attempts": attempts,
        "primary": {"baseline": "alpha", "candidate": "beta", "test": "mcnemar"},
    }
    (folder / "manifest.json").write_text(json.dumps(document, indent=1) + "\n")


def attempt(folder: Path, name: str, task: int, sources: list[dict[str, object]]) -> dict[str, object]:
    """One attempt with what is there of it."""
    lost = LOST.get((name, task), "")
    request_id = f"{name}-request-{task}"
    entry: dict[str, object] = {
        "attempt_id": f"{name}-{task}",
        "configuration_id": name,
        "task_id": f"task-{task}",
        "task_revision": "1",
        "requests_complete": True,
        "requests": [{"request_id": request_id, "result": request_id}],
    }
    if lost == "planned":
        sources.append({"id": request_id, "path": f"{request_id}.json", "sha256": None})
        return entry | {"present": False}
    if lost == "started":
        line = {"line": "start", "request_id": request_id}
        sources.append(written(folder, request_id, f"{request_id}.jsonl", json.dumps(line) + "\n"))
        entry["requests"] = [{"request_id": request_id, "record": request_id}]
        return entry | {"execution": "failed", "stop": {"kind": "killed"}}
    sources.append(written(folder, request_id, f"{request_id}.json", json.dumps(result(request_id, task, lost))))
    if lost:
        return entry | {"execution": "failed", "stop": {"kind": "timeout", "limit_seconds": 60.0}}
    verdict = "pass" if task in PASSED[name] else "fail"
    judged = {"evaluator": {"id": "unit-tests", "version": "1"}, "verdict": verdict}
    return entry | {"execution": "succeeded", "stop": {"kind": "finished"}, "evaluations": [judged]}


def result(request_id: str, task: int, lost: str) -> dict[str, object]:
    """A full result; the lost one reports no usage."""
    usage = {
        "input_tokens": 1000 + 10 * task,
        "cached_input_tokens": 200,
        "input_tokens_include_cache": True,
        "output_tokens": 100,
        "cost_usd": 0.004,
    }
    return {"request_id": request_id, "status": "failed" if lost else "succeeded", "usage": None if lost else usage}


def written(folder: Path, name: str, path: str, text: str) -> dict[str, object]:
    """A file of evidence and its entry in the manifest."""
    (folder / path).write_text(text)
    return {"id": name, "path": path, "sha256": sha256(text.encode()).hexdigest()}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
