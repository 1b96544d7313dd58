"""N-02: FSDP2 writes under a version counter that does not move; no fingerprint taken over is stale (CA-32)."""

from pathlib import Path
from typing import Any

import pytest

from tests.cases.captures import run_python, write_script
from tests.cases.ranked import ROOT, recorded_ranks, said

pytestmark = pytest.mark.slow

STEPS = 4
JOB = '''
    """Four steps of FSDP2 on two ranks, resharded after forward and not; every reuse is recomputed."""
    import json, sys
    from pathlib import Path
    import torch
    import torch.distributed as dist
    import xxhash
    from torch import nn
    from torch.distributed.fsdp import fully_shard
    from paritrace.capture.session import Workload, begin
    from paritrace.capture.settings import CaptureSettings, parse_levels
    from paritrace.runs.envelope import SessionStatus

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, place = dist.get_rank(), Path(sys.argv[1])
    met, told = {}, {"naive": 0, "naive_stale": 0}

    def looked_at(module, args):
        """What reuse by (storage, version) alone would have said of the parameters in use."""
        for parameter in module.parameters(recurse=False):
            key = (parameter.untyped_storage()._cdata, parameter._version)
            found = xxhash.xxh3_64_hexdigest(parameter.detach().clone().flatten().view(torch.uint8).numpy().tobytes())
            if key in met:
                told["naive"] += 1
                told["naive_stale"] += met[key] != found
            met[key] = found

    def trained(reshard, watch=False):
        torch.manual_seed(0)
        model = nn.Sequential(*[nn.Sequential(nn.Linear(16, 16), nn.ReLU()) for _ in range(4)], nn.Linear(16, 4))
        for layer in model:
            fully_shard(layer, reshard_after_forward=reshard)
        fully_shard(model, reshard_after_forward=reshard)
        if watch:
            for layer in model.modules():
                if isinstance(layer, nn.Linear):
                    layer.register_forward_pre_hook(looked_at)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        losses = []
        for _ in range(4):
            loss = model(torch.randn(8, 16)).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(float.hex(loss.item()))
        return losses

    for reshard in (True, False):
        for levels in ("op", "module,op"):
            name = f"{reshard} {levels}"
            settings = CaptureSettings(
                levels=parse_levels(tuple(levels.split(","))), steps=(0, 100), check_reuse=True, diff=False
            )
            capture = begin(place / name, settings, workload=Workload(root=place, main=None, argv=()))
            captured = trained(reshard)
            capture.end(SessionStatus.COMPLETED, metadata={})
            reused, stale = capture.observer.reuse
            told[name] = {"reused": reused, "stale": stale, "gaps": dict(capture.gaps), "losses": captured}
            told[name]["bare"] = trained(reshard)
    trained(True, watch=True)
    (place / f"rank-{rank}.json").write_text(json.dumps(told))
    dist.destroy_process_group()
'''
CAPTURES = [f"{reshard} {levels}" for reshard in (True, False) for levels in ("op", "module,op")]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("n02")
    script = write_script(folder / "job.py", JOB)
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    done = run_python(*launcher, str(script), str(folder), directory=ROOT)
    assert done.status == 0, done.stderr[-4000:]
    return folder


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("name", CAPTURES)
def test_n02_no_fingerprint_taken_over_is_stale(place: Path, name: str, number: int) -> None:
    told: dict[str, Any] = said(place, number)[name]
    assert told["stale"] == 0
    assert told["reused"] > 100
    assert told["gaps"] == {}
    assert told["losses"] == told["bare"]


@pytest.mark.parametrize("number", [0, 1])
def test_n02_reuse_by_storage_and_version_would_be_stale(place: Path, number: int) -> None:
    """The case tells: without our own write log most reuses of unsharded parameters would be wrong."""
    told = said(place, number)
    assert told["naive_stale"] > 0


@pytest.mark.parametrize("name", CAPTURES)
def test_n02_every_collective_completes_and_local_operators_are_seen(place: Path, name: str) -> None:
    for rank in recorded_ranks(place / name).values():
        assert rank.collectives
        assert {one.call for one in rank.collectives} == set(rank.completed)
        assert {one.operation for one in rank.collectives} == {"all_gather", "reduce_scatter"}
        functions = {rank.function(call) for call in rank.calls.values()}
        assert {"fsdp.split_with_sizes_copy.default", "fsdp.chunk_cat.default", "aten.addcdiv_.default"} & functions
        classes = [rank.function(call) for call in rank.calls.values() if "FakeTensor" in rank.function(call)]
        assert classes == []
