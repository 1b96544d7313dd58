"""Level `callsite` on real programs: what is recorded, and that nothing of them changes (CA-10, CA-14, CA-15)."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks import warm

pytestmark = pytest.mark.slow
pytest.importorskip("torch")

HERE = Path(__file__).parent / "callsites"
WAIT_SECONDS = 300.0
TRAINING = ("callsite_training.py", "callsite_model.py")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with the two files of the training."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in TRAINING:
        shutil.copy(HERE / name, folder / name)
    return folder


def environment() -> dict[str, str]:
    kept = {name: text for name, text in os.environ.items() if not name.startswith("PARITRACE_")}
    return kept | warm.SERVED


def started(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [warm.python(), *words],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def captured(folder: Path, *words: str, run: str = "RUN") -> subprocess.CompletedProcess[str]:
    return started(folder, "-m", "paritrace", "run", "-o", f"../{run}", "--level", "callsite", *words)


class Journal:
    """The lines of a capture: definitions by type, and calls with their names put in."""

    def __init__(self, run: Path) -> None:
        (path,) = run.glob("**/calls.jsonl")
        lines: list[Any] = [json.loads(line) for line in path.read_bytes().splitlines()]
        marks: list[dict[str, Any]] = [line for line in lines if isinstance(line, dict)]
        rows: list[list[Any]] = [line for line in lines if isinstance(line, list)]
        self.of: dict[str, list[dict[str, Any]]] = {}
        for mark in marks:
            self.of.setdefault(mark["type"], []).append(mark)
        names = {one["id"]: one["text"] for one in self.of["name"]}
        functions = {one["id"]: (one["level"], one["name"]) for one in self.of["function"]}
        sites = {one["id"]: f"{one['file']}:{one['line']}" for one in self.of["site"]}
        contexts = {one["id"]: one["step"] for one in self.of["context"]}
        self.calls: list[dict[str, Any]] = [
            {
                "id": line[1],
                "left": line[2],
                "level": functions[line[4]][0],
                "function": functions[line[4]][1],
                "site": sites[line[5]],
                "workload_site": sites[line[6]],
                "step": contexts[line[8]],
                "flags": line[10],
                "inputs": {names[slot[0]]: slot[2] for slot in line[16]},
                "sources": {names[slot[0]]: slot[3] for slot in line[16]},
                "outputs": {names[slot[0]]: slot[2] for slot in line[17]},
            }
            for line in rows
            if line[0] == "c"
        ]

    def called(self, function: str, *, step: int = 0) -> list[dict[str, Any]]:
        return [call for call in self.calls if call["function"] == function and call["step"] == step]


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".pyc"
    }


def line_of(file: str, text: str) -> int:
    lines = (HERE / file).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def test_ca10_each_call_that_carries_tensors_is_recorded_and_the_program_is_the_same(checkout: Path) -> None:
    before = digests(checkout)
    plain = started(checkout, "callsite_training.py", "4").stdout
    assert captured(checkout, "callsite_training.py", "4").stdout == plain
    assert digests(checkout) == before
    journal = Journal(checkout.parent / "RUN")
    assert {one["file"]: one["reason"] for one in journal.of["rewritten"]} == {"<main>": "", "callsite_model.py": ""}
    assert [one["left_alone"] for one in journal.of["rewritten"] if one["file"] == "callsite_model.py"] == [
        [[line_of("callsite_model.py", "super()"), 8, "super"]]
    ]
    assert {call["level"] for call in journal.calls} == {"callsite"}
    (net,) = journal.called("callsite_model.Net")
    assert net["site"] == f"<main>:{line_of('callsite_training.py', 'net(x)')}"
    inside = [call for call in journal.calls if net["id"] < call["id"] and call["left"] < net["left"]]
    assert [call["function"] for call in inside if call["step"] == 0] == [
        "torch.nn.modules.linear.Linear",
        "torch.nn.functional.gelu",
        "torch.empty",
        "torch.Tensor.copy_",
        "callsite_model.scaled",
        "torch.Tensor.view",
        "torch.Tensor.clamp",
        "torch.nn.modules.linear.Linear",
    ]
    (loss,) = journal.called("__main__.loss_of")
    assert list(loss["inputs"]) == ["args[0]", "args[1]"]
    assert loss["sources"]["args[0]"] == [net["id"], 0]
    assert [one for one in journal.of.get("gap", []) if one["reason"] == "capture_error"] == []


def test_ca35_what_nobody_wrote_is_not_read_until_somebody_has(checkout: Path) -> None:
    captured(checkout, "callsite_training.py", "2")
    journal = Journal(checkout.parent / "RUN")
    (empty,) = journal.called("torch.empty")
    (copied,) = journal.called("torch.Tensor.copy_")
    assert empty["outputs"]["out"] == {"gap": "uninitialised"}
    assert copied["inputs"]["self"] == {"gap": "uninitialised"}
    assert copied["outputs"]["out"] == copied["inputs"]["args[0]"]


def test_ca10_a_call_that_an_exception_leaves_is_recorded_inside_the_call_around_it(checkout: Path) -> None:
    captured(checkout, "callsite_training.py", "3")
    journal = Journal(checkout.parent / "RUN")
    for step in (0, 1, 2):  # a batch is drawn and tried before the forward that opens its step
        raised = [call for call in journal.calls if call["flags"] & 4]
        around = [call for call in journal.calls if call["function"] == "__main__.risky"]
        assert len(raised) == len(around) == 3
        assert raised[step]["function"] == "torch.nn.functional.linear"
        assert around[step]["id"] < raised[step]["id"] < raised[step]["left"] < around[step]["left"]
        assert raised[step]["outputs"] == {}


def test_ca10_two_captures_agree_and_a_changed_constant_is_found_at_its_call(checkout: Path) -> None:
    for run in ("A", "B"):
        captured(checkout, "callsite_training.py", "3", run=run)
    same = started(checkout, "-m", "paritrace", "compare", "../A", "../B", "--json")
    assert json.loads(same.stdout)["findings"] == []
    model = checkout / "callsite_model.py"
    model.write_text(model.read_text().replace("x * by", "x * (by + 1e-3)"))
    captured(checkout, "callsite_training.py", "3", run="C")
    apart = started(checkout, "-m", "paritrace", "compare", "../A", "../C")
    assert f"callsite_model.py:{line_of('callsite_model.py', 'scaled(hidden')}" in apart.stdout
    assert "scaled" in apart.stdout


def test_ca15_a_compiled_region_stays_one_region(tmp_path: Path) -> None:
    (tmp_path / "compiled.py").write_text(
        "import torch\n"
        "def f(a, b):\n"
        "    return torch.add(torch.nn.functional.relu(a), b).sum()\n"
        "g = torch.compile(f, backend='eager', fullgraph=True)\n"
        "print(g(torch.ones(3), torch.ones(3)).item())\n"
        "print(dict(torch._dynamo.utils.counters['stats']), len(torch._dynamo.utils.counters['graph_break']))\n"
    )
    plain = started(tmp_path, "compiled.py").stdout
    seen = captured(tmp_path, "compiled.py", run=f"{tmp_path.name}/RUN").stdout
    assert seen == plain
    assert "'unique_graphs': 1" in plain
    functions = [call["function"] for call in Journal(tmp_path / "RUN").calls]
    assert functions == ["torch.ones", "torch.ones", "__main__.f", "torch.Tensor.item"]


def test_ca10_a_killed_capture_leaves_the_checkout_as_it_was(checkout: Path) -> None:
    before = digests(checkout)
    command = [sys.executable, "-m", "paritrace", "run", "-o", "../RUN", "--level", "callsite"]
    child = subprocess.Popen(
        [*command, "callsite_training.py", "1000000"], cwd=checkout, env=environment(), stdout=subprocess.PIPE
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline()
        time.sleep(0.2)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait(timeout=WAIT_SECONDS)
    assert digests(checkout) == before
    assert {one["file"] for one in Journal(checkout.parent / "RUN").of["rewritten"]} == {"<main>", "callsite_model.py"}


def test_ca10_a_packages_own_calls_are_seen_where_it_is_selected(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    (tmp_path / "llama.py").write_text(
        "import torch\n"
        "from transformers import LlamaConfig, LlamaForCausalLM\n"
        "torch.manual_seed(0)\n"
        "model = LlamaForCausalLM(LlamaConfig(vocab_size=64, hidden_size=32, intermediate_size=64,\n"
        "    num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=32))\n"
        "ids = torch.randint(0, 64, (1, 8))\n"
        "loss = model(input_ids=ids, labels=ids).loss\n"
        "loss.backward()\n"
        "print(loss.item().hex())\n"
    )
    plain = started(tmp_path, "llama.py").stdout
    own = captured(tmp_path, "llama.py", run=f"{tmp_path.name}/OWN").stdout
    files = "transformers/models/llama/*"
    both = captured(tmp_path, "--callsite-files", files, "llama.py", run=f"{tmp_path.name}/BOTH").stdout
    assert own == both == plain
    of_own, of_both = Journal(tmp_path / "OWN"), Journal(tmp_path / "BOTH")
    assert {call["site"].rpartition(":")[0] for call in of_own.calls} == {"<main>"}
    inside = [call for call in of_both.calls if call["site"].startswith("transformers/models/llama/modeling_llama.py")]
    assert len(inside) > 20
    assert {call["workload_site"].rpartition(":")[0] for call in inside} == {"<main>"}
    assert any(call["function"].endswith("apply_rotary_pos_emb") for call in inside)
