"""`paritrace infer requests` on spans of a real vLLM and a client's records (IN-14)."""

import json
from pathlib import Path

from click.testing import CliRunner

from paritrace.cli.entry import paritrace
from tests.inference.comparison.arms import record, run_of

SPANS = Path(__file__).parents[1] / "data" / "inference" / "vllm" / "q05_spans_sample.jsonl"


def test_a_clients_requests_are_joined_to_the_servers_spans_by_id(tmp_path: Path) -> None:
    records = [record(n, latency_ms=5.0) for n in range(3)]
    for n, one in enumerate(records[:2]):
        metadata = one["metadata"]
        assert isinstance(metadata, dict)
        metadata["x_request_id"] = f"q05-warmup-r{n:04}"
    run = run_of(tmp_path, "run", records)
    runner = CliRunner()
    runner.invoke(paritrace, ["infer", "import", "spans", str(SPANS), "--run", str(run)], catch_exceptions=False)
    found = json.loads(runner.invoke(paritrace, ["infer", "requests", str(run), "--json"]).stdout)
    (join,) = found["joins"]
    assert (join["first"], join["second"], join["joined"]) == ("aiperf", "otlp", 2)
    assert (join["by_basis"], join["unjoined"]) == ({"servers_spelling": 2}, {"no_counterpart": 1})
    screen = runner.invoke(paritrace, ["infer", "requests", str(run)]).stdout
    assert "aiperf and otlp: 2 of 3 are one (2 servers_spelling); not joined: 1 no_counterpart" in screen
