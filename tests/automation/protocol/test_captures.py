"""discover, prepare and trace on real programs, and what becomes of them when launcher, rank or source misbehave."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks import warm
from tests.automation.protocol.captures import (
    ROOT,
    SECRET,
    digests,
    environment,
    program,
    training,
)

pytestmark = pytest.mark.slow
pytest.importorskip("torch")

WAIT_SECONDS = 120.0
TORCHRUN = ("-m", "torch.distributed.run", "--nproc-per-node", "2")
STARTS = "import os, subprocess, sys\nwords = [sys.executable, *sys.argv[1:]]\n"


def until(found: Callable[[], object]) -> None:
    for _ in range(int(WAIT_SECONDS / 0.05)):
        if found():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come about in time")


def has_ended(begun: Path) -> bool:
    """Whether the process of a rank has; nobody may have waited for it yet."""
    try:
        stat = Path(f"/proc/{json.loads(begun.read_bytes())['process']['pid']}/stat").read_bytes()
    except OSError:
        return True
    return stat[stat.rindex(b")") + 2 :][:1] == b"Z"


def lines_of(result: dict[str, Any]) -> tuple[list[list[Any]], list[dict[str, Any]]]:
    """The calls of a run's one journal, and its other records."""
    (path,) = Path(result["run"]).glob("**/calls.jsonl")
    lines: list[Any] = [json.loads(line) for line in path.read_bytes().splitlines()]
    calls: list[list[Any]] = [line for line in lines if isinstance(line, list) and line[0] == "c"]
    marks: list[dict[str, Any]] = [line for line in lines if isinstance(line, dict)]
    return calls, marks


def test_au4_au5_au6_a_workload_is_discovered_planned_and_traced_and_its_checkout_stays(tmp_path: Path) -> None:
    asking = training(tmp_path)
    before = digests(asking.checkout)
    discovery = asking.result("discover", "3")
    found = {file["file"]: file for file in discovery["files"]}
    (gelu,) = [
        site for site in found["callsite_model.py"]["sites"] if site["functions"] == ["torch.nn.functional.gelu"]
    ]
    assert gelu["calls"] == 3
    assert [(slot["name"], slot["dtypes"], slot["shapes"]) for slot in gelu["slots"]] == [
        ("args[0]", ["float32"], [[5, 16]]),
        ("out", ["float32"], [[5, 16]]),
    ]
    calls, _ = lines_of(discovery)
    bits: list[Any] = [slot[2] for call in calls for slot in call[16] + call[17]]
    assert {"gap": "not_collected", "detail": "discover"} in bits
    assert not [one for one in bits if isinstance(one, str)]
    (asking.folder / "own.yaml").write_text(
        "version: 1\nexclude: [callsite_training.py]\nsteps: [1, 3]\n"
        "context_vars: ['callsite_model.py:Net.forward:self', 'callsite_model.py:scaled:factor']\n"
    )
    names = asking.error("prepare", "3", discovery=discovery, configuration=str(asking.folder / "own.yaml"))
    assert names["code"] == "bad_context_variable"
    plan = asking.result("prepare", "3", discovery=discovery)
    assert {one["file"] for one in plan["plan"]["files"]} == before.keys()
    traced = asking.result("trace", "3", discovery=discovery, plan=plan)
    assert traced["coverage"] == "observed_callsites_only"
    assert traced["sources"] == before
    assert digests(asking.checkout) == before
    for path in [*tmp_path.glob("outputs/**/*"), *tmp_path.glob("local/**/*")]:
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path


def test_au4_two_ranks_under_torchrun_leave_one_receipt_each(tmp_path: Path) -> None:
    asking = training(tmp_path, [warm.python(), *TORCHRUN], (0, 1))
    discovery = asking.result("discover", "2")
    assert [(rank["rank"], rank["calls"] > 0) for rank in discovery["ranks"]] == [(0, True), (1, True)]
    assert asking.result("prepare", "2", discovery=discovery)["plan"]["files"]


def test_ca11_only_planned_sites_are_recorded_and_ca25_variables_go_with_their_calls(tmp_path: Path) -> None:
    asking = training(tmp_path)
    main = asking.checkout / "callsite_training.py"
    main.write_text(main.read_text().replace("for x, y in batches(", "for step, (x, y) in enumerate(batches(", 1))
    main.write_text(main.read_text().replace("batches(num_steps):", "batches(num_steps)):", 1))
    discovery = asking.result("discover", "2")
    (asking.folder / "own.yaml").write_text(
        "version: 1\nexclude: [callsite_model.py]\nsteps: [0, 2]\n"
        "context_vars: ['callsite_training.py:main:step', 'callsite_training.py:main:loss']\n"
    )
    plan = asking.result("prepare", discovery=discovery, configuration=str(asking.folder / "own.yaml"))
    assert {
        "file": "callsite_model.py",
        "reason": "left out by the configuration: exclude callsite_model.py",
    } in plan["plan"]["excluded"]
    traced = asking.result("trace", "2", discovery=discovery, plan=plan)
    calls, marks = lines_of(traced)
    assert {mark["file"]: mark["reason"] for mark in marks if mark["type"] == "rewritten"} == {
        "<main>": "",
        "callsite_model.py": "not in the plan",
    }
    sites = {mark["id"]: mark["file"] for mark in marks if mark["type"] == "site"}
    scalars = {mark["id"]: mark["values"] for mark in marks if mark["type"] == "scalars"}
    assert {sites[call[5]] for call in calls} == {"<main>"}
    told = [scalars[call[13]] for call in calls]
    assert {"context.step": "0", "context.loss": "<unbound>"} in told
    assert {"context.step": "1", "context.loss": "<not a scalar: Tensor>"} in told


def test_au19_a_source_edited_during_the_capture_is_kept_and_named_with_rank_and_node(tmp_path: Path) -> None:
    """The model is edited before it is imported, the script after it was compiled."""
    asking = training(tmp_path)
    main = asking.checkout / "callsite_training.py"
    edit = "import os\nif os.environ.get('EDIT'):\n    open(os.environ['EDIT'], 'a').write('# edited\\n')\n"
    first, rest = main.read_text().split("\nimport", 1)
    main.write_text(f"{first}\n{edit}import{rest}")
    discovery = asking.result("discover", "2")
    plan = asking.result("prepare", "2", discovery=discovery)
    for edited in ("callsite_model.py", "callsite_training.py"):
        path = asking.checkout / edited
        before = path.read_bytes()
        workload = asking.workload("2")
        workload["env"]["EDIT"] = str(path)
        error = asking.error("trace", "2", workload=workload, discovery=discovery, plan=plan)
        assert (error["code"], error["kind"]) == ("source_changed", "failed")
        assert "rank 0 on" in error["message"]
        assert edited in error["message"]
        assert path.read_bytes() == before + b"# edited\n"
        again = asking.error("trace", "2", discovery=discovery, plan=plan)
        assert (again["code"], again["kind"]) == ("source_changed", "refused")
        path.write_bytes(before)


FAULTS = {
    "launcher_failed": (STARTS + "subprocess.run(words)\nsys.exit(3)\n", "print('x')\n"),
    "launcher_returned_early": (
        STARTS + "subprocess.Popen(words, start_new_session=True)\n"
        "import pathlib, time\norder = pathlib.Path(sys.argv[3])\n"
        "while not list(order.parent.glob('ranks/*/begun.json')): time.sleep(0.02)\n",
        "import time\ntime.sleep(100)\n",
    ),
    "arguments_changed": (STARTS + "subprocess.run([*words, 'more'])\n", "print('x')\n"),
    "restart_into_capture": (STARTS + "subprocess.run(words)\nsubprocess.run(words)\n", "print('x')\n"),
    "ranks_missing": ("print('nothing is started')\n", "print('x')\n"),
    "unexpected_rank": (
        STARTS + "subprocess.run(words, env={**os.environ, 'RANK': '4', 'WORLD_SIZE': '5', 'LOCAL_RANK': '4'})\n",
        "print('x')\n",
    ),
    "empty_trace": (STARTS + "subprocess.run(words, check=True)\n", "print('no tensors here')\n"),
    "rank_failed": (STARTS + "subprocess.run(words)\n", "raise SystemExit(7)\n"),
}


@pytest.mark.parametrize("code", FAULTS)
def test_au15_what_a_launcher_or_a_rank_does_wrong_fails_the_capture_by_name(tmp_path: Path, code: str) -> None:
    launcher, text = FAULTS[code]
    asking = program(tmp_path, text, launcher)
    error = asking.error("discover")
    assert (error["code"], error["kind"]) == (code, "failed"), error
    before = digests(asking.checkout)
    assert set(before) == {"main.py"}
    if code != "launcher_returned_early":
        return
    (begun,) = tmp_path.glob("outputs/*/ranks/*/begun.json")
    assert has_ended(begun)


KILLED = {
    "launcher": (
        STARTS + "subprocess.Popen(words, start_new_session=True)\n"
        "import pathlib, time\norder = pathlib.Path(sys.argv[3])\n"
        "while not list(order.parent.glob('ranks/*/begun.json')): time.sleep(0.02)\n"
        "os.kill(os.getpid(), 9)\n",
        "import time\ntime.sleep(1000)\n",
        "launcher_failed",
    ),
    "worker": (STARTS + "subprocess.run(words)\n", "import os\nos.kill(os.getpid(), 9)\n", "ranks_missing"),
}


@pytest.mark.parametrize("who", KILLED)
def test_au6_a_launcher_or_a_worker_that_is_killed_leaves_no_process_and_the_checkout_as_it_was(
    tmp_path: Path, who: str
) -> None:
    launcher, text, code = KILLED[who]
    asking = program(tmp_path, text, launcher)
    before = digests(asking.checkout)
    error = asking.error("discover")
    assert (error["code"], error["kind"]) == (code, "failed")
    (begun,) = tmp_path.glob("outputs/*/ranks/*/begun.json")
    assert has_ended(begun)
    assert digests(asking.checkout) == before


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"script": "start.sh"}, "shell_script"),
        ({"script": "nowhere.py"}, "no_script"),
        ({"cwd": "relative"}, "no_cwd"),
    ],
)
def test_au15_what_cannot_be_run_is_refused_before_anything_is_written(
    tmp_path: Path, changed: dict[str, str], code: str
) -> None:
    asking = program(tmp_path, "print('x')\n")
    (asking.checkout / "start.sh").write_text("#!/bin/bash\npython main.py\n")
    error = asking.error("discover", workload=asking.workload() | changed)
    assert (error["code"], error["kind"]) == (code, "refused")
    assert asking.error("discover", local_root=str(tmp_path / "outputs"))["code"] == "local_root_in_output"
    assert not (tmp_path / "outputs").exists()


def test_au18_a_workload_that_takes_too_long_is_ended_with_its_ranks(tmp_path: Path) -> None:
    launcher = STARTS + "sys.exit(subprocess.run(words, start_new_session=True).returncode)\n"
    asking = program(tmp_path, "import time\ntime.sleep(1000)\n", launcher)
    error = asking.error("discover", timeout_seconds=4.0)
    assert (error["code"], error["kind"]) == ("workload_timeout", "failed")
    for begun in tmp_path.glob("outputs/*/ranks/*/begun.json"):
        assert has_ended(begun)


def test_au6_a_tool_that_is_killed_leaves_no_process_and_its_output_names_it(tmp_path: Path) -> None:
    launcher = STARTS + "sys.exit(subprocess.run(words, start_new_session=True).returncode)\n"
    asking = program(tmp_path, "import time\ntime.sleep(1000)\n", launcher)
    before = digests(asking.checkout)
    request = asking.request("discover")
    tool = subprocess.Popen(
        [sys.executable, "-m", "paritrace.automation", "discover", "--request", str(request)],
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.DEVNULL,
    )
    try:
        until(lambda: list(tmp_path.glob("outputs/*/ranks/*/begun.json")))
    finally:
        os.kill(tool.pid, signal.SIGKILL)
        tool.wait()
    (begun,) = tmp_path.glob("outputs/*/ranks/*/begun.json")
    until(lambda: has_ended(begun))
    assert digests(asking.checkout) == before
    output = json.loads(request.read_text())["output"]
    error = asking.error("discover", output=output)
    assert (error["code"], error["kind"]) == ("output_not_fresh", "refused")
    assert f"process {tool.pid} of" in error["message"]
    assert "unfinished" in error["message"]
