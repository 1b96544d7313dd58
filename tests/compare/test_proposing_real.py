"""A Llama of transformers against a port with names of its own: maps proposed, reviewed, applied (CP-5)."""

import json
from pathlib import Path

import pytest

from paritrace.cli.entry import status_of
from tests.cases.captures import run_captured

SCRIPT = Path(__file__).parent / "ported_llama.py"
BY_HAND = ("ln1", "ln2")
THEIRS = {"ln1": "input_layernorm", "ln2": "post_attention_layernorm"}


@pytest.mark.slow
def test_cp5_a_port_corresponds_by_reviewed_proposals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [str(tmp_path / kind) for kind in ("original", "port")]
    for kind, run in zip(("original", "port"), runs, strict=True):
        done = run_captured(SCRIPT, Path(run), kind, str(tmp_path / "weights.pt"), levels=["module"], steps="0:2")
        assert done.status == 0, done.stderr
    file = tmp_path / "names.json"
    assert status_of(["propose-map", *runs, "-o", str(file)]) == 0
    document = json.loads(file.read_text())
    rules = {one["rule"] for one in document["maps"]}
    assert {"candidate:decoder=", "baseline:model=", "baseline:model.layers=blocks"} <= rules
    assert "baseline:model.layers.1.self_attn.o_proj=blocks.1.attention.dense" in rules
    assert sorted(len(one["baseline"]) for one in document["related"] if one["relation"] == "fused") == [2, 2, 3, 3]
    assert [len(one["baseline"]) for one in document["ambiguous"]] == [5]  # norms of a fresh model: all ones
    assert status_of(["compare", *runs, "--map", str(file)]) == 2  # nobody has reviewed it
    document |= {"reviewer": "Ada"}
    for one in document["maps"]:
        one["review"] = "accepted"
    norms = [f"model.layers.{n}.{THEIRS[name]}=blocks.{n}.{name}" for n in (0, 1) for name in BY_HAND]
    norms.append("model.norm=final_norm")
    document["maps"] += [{"rule": rule, "evidence": "read both sources", "review": "accepted"} for rule in norms]
    file.write_text(json.dumps(document))
    capsys.readouterr()
    assert status_of(["compare", *runs, "--json"]) == 0
    without = json.loads(capsys.readouterr().out)
    assert status_of(["compare", *runs, "--json", "--map", str(file)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (without["ladder"]["weights"], found["ladder"]["weights"]) == ("?", "=")
    assert without["counts"]["paired"] <= 4
    assert found["pairs_by_basis"]["declared"] > 20
    assert all(one["met"] for one in found["maps"] if one["rule"] not in ("candidate:decoder=", "baseline:model="))
