"""Joins ranks that something relates into sets: a union-find over few elements."""

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

Element = TypeVar("Element", bound=Hashable)


class Joined(Generic[Element]):
    """Sets of elements; two are in one set when a chain of `join` leads from one to the other."""

    def __init__(self, elements: Iterable[Element]) -> None:
        self._parents: dict[Element, Element] = {element: element for element in elements}

    def join(self, elements: Iterable[Element]) -> None:
        """Puts these into one set; those that are not known are left out."""
        known = [self._root(element) for element in elements if element in self._parents]
        for root in known[1:]:
            self._parents[self._root(root)] = self._root(known[0])

    def sets(self) -> list[list[Element]]:
        """Returns every set, in the order in which the elements were given."""
        found: dict[Element, list[Element]] = {}
        for element in self._parents:
            found.setdefault(self._root(element), []).append(element)
        return list(found.values())

    def _root(self, element: Element) -> Element:
        while self._parents[element] != element:
            self._parents[element] = self._parents[self._parents[element]]
            element = self._parents[element]
        return element
