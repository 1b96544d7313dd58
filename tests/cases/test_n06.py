"""N-06: backward calls link to the forward call that owns the node, or say `link_ambiguous` (CA-10)."""

from pathlib import Path

import pytest

from paritrace.evidence.calls import Call, Flag, Phase
from paritrace.evidence.gaps import CountedGap
from tests.cases.captures import Recorded, recorded, run_captured, write_script

SCRIPT = """
import sys
import threading

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sin(x) + torch.cos(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * torch.cos(x) - grad * torch.sin(x)


first = nn.Sequential(nn.Linear(6, 6), nn.GELU(), nn.Linear(6, 6))
second = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6))
block = nn.Sequential(nn.Linear(6, 6), nn.GELU(), nn.Dropout(0.2), nn.Linear(6, 6))
parameters = [*first.parameters(), *second.parameters(), *block.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.1)
data = torch.randn(3, 6)
results = {}


def forward(name, model):
    results[name] = model(data)


threads = [threading.Thread(target=forward, args=item) for item in (("a", first), ("b", second))]
if sys.argv[1] == "two-threads":
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
else:
    forward("a", first)
    forward("b", second)
x = Twice.apply(results["a"] + results["b"])
with torch.no_grad():
    scale = x.abs().max() + 1
x = x / scale
index = torch.arange(3)  # calls without gradient between two calls that have one
x = x * x.detach().ge(0)
with torch.utils.checkpoint.set_checkpoint_early_stop(False):
    x = checkpoint(block, x, use_reentrant=False)
x = checkpoint(block, x, use_reentrant=True)
inner = torch.randn(3, 6, requires_grad=True)
(slope,) = torch.autograd.grad((x * inner).exp().sum(), inner, create_graph=True)
(x.square().mean() + slope.square().mean()).backward()
optimizer.step()
"""

# Autograd node -> what the forward call that made it is called.
MAKERS = {
    "AddmmBackward0": "aten.addmm.",
    "GeluBackward0": "aten.gelu.",
    "TanhBackward0": "aten.tanh.",
    "ExpBackward0": "aten.exp.",
    "DivBackward0": "aten.div.",
    "TBackward0": "aten.t.",
}


def captured(place: Path, threads: str) -> Recorded:
    levels = ("module", "op")
    done = run_captured(write_script(place / "train.py", SCRIPT), place / "run", threads, levels=levels)
    assert done.status == 0, done.stderr
    return recorded(place / "run")


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return captured(tmp_path_factory.mktemp("one-thread"), "one-thread")


def in_backward(journal: Recorded) -> list[Call]:
    return [call for call in journal.calls if journal.phase(call) is Phase.BACKWARD and call.node >= 0]


@pytest.mark.slow
def test_a_link_names_the_maker_of_the_node(journal: Recorded) -> None:
    calls = journal.by_id()
    linked = [call for call in in_backward(journal) if call.link >= 0 and not call.flags & Flag.RECOMPUTE]
    checked = 0
    for call in linked:
        maker = MAKERS.get(journal.node(call))
        if maker is not None:
            assert journal.function(calls[call.link]).startswith(maker), journal.node(call)
            checked += 1
    assert checked >= 10


@pytest.mark.slow
def test_what_is_not_linked_says_why(journal: Recorded) -> None:
    own_nodes = [call for call in in_backward(journal) if journal.node(call) in MAKERS]
    assert all(call.link >= 0 or call.flags & Flag.LINK_AMBIGUOUS for call in own_nodes)


@pytest.mark.slow
def test_recomputed_calls_are_marked_and_never_called_backward_of_gelu(journal: Recorded) -> None:
    calls = journal.by_id()
    recomputed = [call for call in journal.calls if call.flags & Flag.RECOMPUTE]
    products = [call for call in recomputed if journal.function(call).startswith("aten.addmm.")]
    assert len(products) >= 3, (
        "two linear layers in one mode; the other stops before the last, whose output nobody saved"
    )
    for call in products:
        assert call.link < 0 or journal.function(calls[call.link]) == journal.function(call)
    forward_only = [call for call in journal.calls if journal.function(call).startswith("aten.addmm.")]
    wrongly = [call for call in forward_only if journal.node(call).startswith("GeluBackward0") and call.link >= 0]
    assert not [call for call in wrongly if journal.function(calls[call.link]).startswith("aten.gelu.")]


@pytest.mark.slow
def test_a_forward_call_is_not_claimed_by_two_kinds_of_node(journal: Recorded) -> None:
    kinds: dict[int, set[str]] = {}
    for call in in_backward(journal):
        if call.link >= 0 and not call.flags & Flag.RECOMPUTE:
            kinds.setdefault(call.link, set()).add(journal.node(call))
    assert kinds
    assert {link: nodes for link, nodes in kinds.items() if len(nodes) > 1} == {}


@pytest.mark.slow
def test_with_a_forward_pass_on_another_thread_no_link_is_claimed(tmp_path: Path) -> None:
    found = captured(tmp_path, "two-threads")
    own_nodes = [call for call in in_backward(found) if found.node(call) in MAKERS]
    assert len(own_nodes) >= 10
    assert all(call.link < 0 and call.flags & Flag.LINK_AMBIGUOUS for call in own_nodes)
    assert CountedGap.THREAD_NOT_COVERED in {gap.reason for gap in found.gaps}
