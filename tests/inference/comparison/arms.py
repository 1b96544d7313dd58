"""Arms of runs for tests: artifacts of AIPerf records, with their conditions."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from paritrace.inference.appending import append_import, init
from paritrace.inference.importers.client_aiperf import open_records
from paritrace.inference.importing import Asked, Scope

KNOWN = {
    "engine.config": "a",
    "engine.version": "0.30.0",
    "gpu.driver_version": "580.1",
    "gpu.name": "H100",
    "load.client_saturated": False,
    "load.loop": "open",
    "load.order_of_arms": "ABBA",
    "load.warm_up_excluded": True,
    "model.weights_digest": "5f" * 32,
    "workload.spec_digest": "6e" * 32,
}


def record(number: int, *, latency_ms: float | None, error: int | None = None) -> dict[str, object]:
    """One record of AIPerf: a latency, or an error's code."""
    metrics: dict[str, object] = {"output_sequence_length": {"value": 10, "unit": "tokens"}}
    if latency_ms is not None:
        metrics["request_latency"] = {"value": latency_ms, "unit": "ms"}
        metrics["time_to_first_token"] = {"value": latency_ms / 10, "unit": "ms"}
    metadata = {"x_request_id": f"r{number}", "request_start_ns": 1_000 + number, "request_end_ns": 2_000 + number}
    return {"metadata": metadata, "metrics": metrics, "error": None if error is None else {"code": error, "type": "E"}}


def run_of(
    folder: Path, name: str, records: Sequence[Mapping[str, object]], *, conditions: Mapping[str, object] | None = None
) -> Path:
    """A run directory with an artifact of such records, and with conditions as observed ones."""
    run = folder / name
    init(run, run_id=name)
    source = folder / f"{name}.jsonl"
    source.write_text("".join(json.dumps(one) + "\n" for one in records))
    imported = open_records(Asked(source, Scope(name, "inference")))
    append_import(run, imported, component="import:aiperf", run_id=name, session="inference")
    if conditions is not None:
        fields = {key: {"value": value, "stated": "observed"} for key, value in conditions.items()}
        (run / "inference-conditions.json").write_text(json.dumps({"fields": fields}))
    return run


def arm(
    folder: Path,
    name: str,
    scales: Sequence[float],
    *,
    failed: int = 0,
    changed: Mapping[str, object] | None = None,
) -> Path:
    """A folder of runs whose latencies are 100 to 199 ms times a scale, each run a block; some requests failed."""
    arm_folder = folder / name
    arm_folder.mkdir()
    for number, scale in enumerate(scales):
        records = [record(n, latency_ms=(100 + n) * scale) for n in range(100 - failed)]
        records += [record(1000 + n, latency_ms=None, error=500) for n in range(failed)]
        known = KNOWN | {"label.block": f"block-{number}"} | dict(changed or {})
        run_of(arm_folder, f"{name}-{number}", records, conditions=known)
    return arm_folder
