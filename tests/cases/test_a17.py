"""A-17: a checkpoint keeps one rank's generator as if it were everybody's; rank 0 is exactly the one that is right."""

from pathlib import Path

import pytest

from paritrace.compare.engine import compare
from paritrace.compare.resume import inventory
from paritrace.compare.resume_boundary import parse_resume
from paritrace.compare.resume_joined import resumed
from paritrace.compare.resume_result import ResumePlan
from paritrace.compare.resume_states import SessionStates
from paritrace.compare.settings import Settings
from paritrace.reports.headline import statement
from paritrace.reports.screen_resume import boundary
from paritrace.runs.reading import open_run
from paritrace.runs.views import SessionView
from tests.cases.captures import write_script
from tests.cases.ranked import run_ranks

SCRIPT = """
    import sys
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    import paritrace

    folder, resume = sys.argv[1], len(sys.argv) > 2
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1))
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    torch.manual_seed(100 + rank)
    first = 0
    if resume:
        kept = torch.load(f"{folder}/kept.pt")
        net.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
        torch.set_rng_state(kept["rng"])
        first = 2
    for step in range(first, 4):
        if step == 2 and not resume and rank == 0:
            state = {"model": net.state_dict(), "optimizer": optimizer.state_dict(), "rng": torch.get_rng_state()}
            torch.save(state, f"{folder}/kept.pt")
        paritrace.step(step)
        optimizer.zero_grad()
        model(torch.full((3, 4), float(step + rank + 1))).square().mean().backward()
        optimizer.step()
    dist.barrier()
    dist.destroy_process_group()
"""


@pytest.mark.slow
def test_every_rank_but_the_one_that_was_kept_is_named(tmp_path: Path) -> None:
    script = write_script(tmp_path / "train.py", SCRIPT)
    for name, more in (("whole", ()), ("resumed", ("resume",))):
        ended = run_ranks(script, tmp_path / name, str(tmp_path), *more, levels=("module",))
        assert ended.status == 0, ended.stderr
    with open_run(tmp_path / "whole") as ours, open_run(tmp_path / "resumed") as theirs:
        settings = resumed((ours, theirs), parse_resume("2"), settings=Settings())
        found = compare(ours, theirs, settings).result
    assert found.resume is not None
    (part,) = (part for part in found.resume.parts if part.differ)
    (state,) = (state for state in part.states if not state.idle)
    assert (part.group, state.name, state.ranks) == ("rng", "torch_cpu", (1,))
    assert part.agree_ranks == (0,)
    assert found.resume.ranks == (0, 1), "all ranks by default"
    assert statement(found)[1].endswith("before step 2: RNG (torch_cpu) on rank 1.")


def test_ranks_are_told_as_ranges_and_those_that_agree_beside_them(a_session: SessionView) -> None:
    """256 ranks of which 4 hold their own stream, without 256 processes."""

    def side(streams: dict[int, str]) -> dict[int, SessionStates]:
        return {
            rank: SessionStates(
                a_session,
                begins={9: {("rng", "torch_cpu"): f"{rank:016x}"}, 10: {("rng", "torch_cpu"): stream}},
            )
            for rank, stream in streams.items()
        }

    ours = side({rank: f"own {rank}" for rank in range(256)})
    theirs = side({rank: f"own {rank // 64 * 64}" for rank in range(256)})
    pairs = {rank: (ours[rank], theirs[rank]) for rank in ours}
    plan = ResumePlan(step=10, assumed="")
    found = inventory(pairs, plan, own_steps=dict.fromkeys(range(256), 10), missing=())
    (part,) = found.parts
    assert (part.agree, part.differ, part.agree_ranks) == (4, 252, (0, 64, 128, 192))
    assert boundary(found).endswith("RNG (torch_cpu) on ranks 1-63, 65-127, 129-191, 193-255.")


@pytest.fixture
def a_session(tmp_path: Path) -> SessionView:
    """Any session: what it recorded is given above."""
    import torch

    import paritrace

    with paritrace.trace(tmp_path / "run"):
        torch.nn.Linear(1, 1)(torch.ones(1))
    with open_run(tmp_path / "run") as opened:
        return opened.sessions[0]
