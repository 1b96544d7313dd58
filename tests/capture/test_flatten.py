"""Tensors in nested values: their paths, and values that cannot be walked to the end (CA-4)."""

from collections import UserDict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest
import torch

from paritrace.capture.pytorch.flatten import TooManyContainersError, tensors

T = torch.ones(2)


class Pair(NamedTuple):
    a: object
    b: object


@dataclass
class Node:
    parent: "Node | None"
    value: torch.Tensor
    children: "list[Node]" = field(default_factory=list["Node"])


class Key:
    def __repr__(self) -> str:
        raise AssertionError("a key is not to be written")


class Meta(type):
    def __getattribute__(cls, name: str) -> Any:
        raise AssertionError(name)


class Plain(metaclass=Meta):
    pass


def paths(value: object) -> list[str]:
    return [path for path, _ in tensors(value, "out")]


def test_ca4_each_tensor_has_its_path() -> None:
    value = (T, {"k": [T, 1, None], 3: T}, Pair(1, T), UserDict(a=T))
    assert paths(value) == ["out[0]", "out[1].k[0]", "out[1][3]", "out[2].b", "out[3].a"]


def test_ca4_keys_that_are_objects_go_by_their_position() -> None:
    assert paths({Key(): T, (1, "a"): T, torch.float32: T, T: T}) == [
        "out[key 0]",
        "out[(1, 'a')]",
        "out[torch.float32]",
        "out[key 3]",
    ]


def test_containers_inside_themselves_are_entered_once() -> None:
    root = Node(None, T)
    for _ in range(20):
        child = Node(root, T)
        child.children = [Node(child, T) for _ in range(20)]
        root.children.append(child)
    assert len(paths(root)) == 1 + 20 + 400
    ring: list[object] = [T]
    ring += [ring] * 10
    assert paths(ring) == ["out[0]"]


def test_a_graph_with_more_paths_than_can_be_walked_is_given_up() -> None:
    graph: list[list[object]] = [[] for _ in range(12)]
    for one in graph:
        one.extend(graph)
    with pytest.raises(TooManyContainersError):
        paths(graph)


def test_the_class_of_an_object_is_not_asked() -> None:
    assert paths([Plain(), T]) == ["out[1]"]
