"""Which forward call a backward call belongs to, and which original a recomputed one repeats (CA-10)."""

from collections.abc import Callable

import pytest
import torch

from paritrace.capture.pytorch.internals import sequence_number
from paritrace.capture.pytorch.links import AMBIGUOUS, UNLINKED, ForwardNodes, Link, Originals
from paritrace.evidence.calls import Slot


class Node:
    """A node of the graph, by its number and name."""

    def __init__(self, number: int, name: str) -> None:
        self._number = number
        self._name = name

    def name(self) -> str:
        return self._name

    def _sequence_nr(self) -> int:
        return self._number


def slots(bits: str) -> tuple[Slot, ...]:
    return (Slot(0, 0, bits),)


class Numbers:
    """The thread's sequence number, turned by hand."""

    def __init__(self) -> None:
        self.now = 10

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def numbers(monkeypatch: pytest.MonkeyPatch) -> Numbers:
    made = Numbers()
    monkeypatch.setattr("paritrace.capture.pytorch.links.sequence_number", made)
    return made


def link(nodes: ForwardNodes, number: int, name: str) -> Link:
    return nodes.link(Node(number, name), name)


def test_a_call_owns_the_node_for_which_the_number_rose(numbers: Numbers) -> None:
    nodes = ForwardNodes()
    numbers.now = 11
    nodes.claim(5, base="addmm", grad_enabled=True, asks_for_grad=True)
    assert link(nodes, 10, "AddmmBackward0") == Link(5, False)
    assert link(nodes, 11, "AddmmBackward0") == UNLINKED


def test_a_call_without_a_new_number_claims_nothing(numbers: Numbers) -> None:
    """The naive "current minus one" would let it claim the node of the call before."""
    nodes = ForwardNodes()
    numbers.now = 11
    nodes.claim(5, base="mul", grad_enabled=True, asks_for_grad=True)
    nodes.claim(6, base="mul", grad_enabled=True, asks_for_grad=True)
    assert link(nodes, 10, "MulBackward0") == Link(5, False)


def test_a_call_that_asks_for_no_gradient_claims_nothing(numbers: Numbers) -> None:
    nodes = ForwardNodes()
    numbers.now = 11
    nodes.claim(5, base="mul", grad_enabled=True, asks_for_grad=False)
    assert link(nodes, 10, "MulBackward0") == UNLINKED


@pytest.mark.parametrize(
    ("base", "name", "fits"),
    [
        ("addmm", "AddmmBackward0", True),
        ("nllloss", "NllLossBackward0", True),
        ("nlllossforward", "NllLossBackward0", True),
        ("softmax", "SoftmaxBackward0", True),
        ("mul", "AddmmBackward0", False),
        ("", "AddmmBackward0", False),
    ],
)
def test_a_node_whose_name_is_another_operators_is_ambiguous(
    numbers: Numbers, base: str, name: str, fits: bool
) -> None:
    nodes = ForwardNodes()
    numbers.now = 11
    nodes.claim(5, base=base, grad_enabled=True, asks_for_grad=True)
    assert link(nodes, 10, name) == (Link(5, False) if fits else AMBIGUOUS)


def test_the_calls_inside_of_a_custom_function_are_one_group(numbers: Numbers) -> None:
    nodes = ForwardNodes()
    numbers.now = 11
    nodes.claim(7, base="mul", grad_enabled=False, asks_for_grad=True)
    nodes.claim(8, base="sin", grad_enabled=False, asks_for_grad=True)
    assert link(nodes, 10, "DoubleBackward") == Link(7, False)
    assert link(nodes, 10, "MulBackward0") == AMBIGUOUS, "an operator's node is no group's"


def test_with_another_thread_nothing_is_sure_until_the_step_ends(numbers: Numbers) -> None:
    nodes = ForwardNodes()
    numbers.now = 11
    nodes.claim(5, base="addmm", grad_enabled=True, asks_for_grad=True)
    nodes.other_threads = True
    assert link(nodes, 10, "AddmmBackward0") == AMBIGUOUS
    nodes.forget()
    assert link(nodes, 10, "AddmmBackward0") == UNLINKED
    assert not nodes.other_threads


def test_the_numbers_of_torch_are_what_the_rule_takes_them_for() -> None:
    """Against real graphs: each call in turn claims, and each node finds its own call."""
    nodes = ForwardNodes()
    x = torch.ones(2, requires_grad=True)
    acts: list[tuple[str, Callable[[torch.Tensor], torch.Tensor]]] = [
        ("mul", lambda t: t * 2),
        ("detach", lambda t: t.detach() + 0),
        ("sin", lambda t: t.sin()),
        ("add", lambda t: t + 1),
    ]
    made = []
    for record, (base, act) in enumerate(acts):
        # The mode is asked before the node is made below it, but after autograd took the number.
        before = sequence_number()
        out = act(x)
        rose = sequence_number() > before
        nodes.claim(record, base=base, grad_enabled=True, asks_for_grad=out.requires_grad)
        assert rose is out.requires_grad
        made.append(out)
    for record, out in enumerate(made):
        if out.grad_fn is not None:
            assert nodes.link(out.grad_fn, out.grad_fn.name()) == Link(record, False)


def test_the_one_original_is_found_whatever_its_inputs() -> None:
    originals = Originals()
    originals.add(("block", 1), 4, slots("a"))
    assert originals.find(("block", 1), slots("b")) == Link(4, False)
    assert originals.find(("block", 2), slots("a")) == UNLINKED


def test_of_several_each_is_repeated_once_and_by_equal_inputs() -> None:
    originals = Originals()
    for record, bits in ((4, "a"), (5, "b"), (6, "a")):
        originals.add(("block",), record, slots(bits))
    found = [originals.find(("block",), slots(bits)) for bits in ("a", "a", "b", "a", "c")]
    assert found == [Link(4, False), Link(6, False), Link(5, False), AMBIGUOUS, AMBIGUOUS]
    originals.forget()
    assert originals.find(("block",), slots("a")) == UNLINKED
