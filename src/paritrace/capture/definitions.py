"""Interning: each definition gets an id and is written once, before its first use (CA-4)."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from paritrace.evidence import calls
from paritrace.evidence.definition import Definition


class Definitions:
    """Ids of names, functions, scopes, contexts, origins and scalars of one session; `emit` takes each new record."""

    def __init__(self, emit: Callable[[Definition], None]) -> None:
        self._emit = emit
        self.emit_context: Callable[[Definition], None] = emit  # a black box keeps those of steps that it keeps
        self._contexts: dict[Hashable, int] = {}  # of the present step: a month has millions of steps
        self._ids: dict[Hashable, int] = {}
        self._next: dict[str, int] = {}
        self._scopes: dict[int, calls.Scope] = {}
        self._texts: list[str] = []

    def new_id(self, family: str, *, first: int = 0) -> int:
        """The next free id of a family; ids of one family are dense from `first`."""
        value = self._next.get(family, first)
        self._next[family] = value + 1
        return value

    def name(self, text: str) -> int:
        """Id of an interned string: a slot name, a node name."""
        found = self._ids.get(("name", text))
        if found is not None:
            return found
        made = self._ids[("name", text)] = self.new_id("name")
        self._texts.append(text)
        self._emit(calls.Name(made, text))
        return made

    def text(self, name: int) -> str:
        """The string of an interned name."""
        return self._texts[name]

    def function(self, name: str, level: calls.Level) -> int:
        found = self._ids.get(("function", name, level))
        if found is not None:
            return found
        made = self._ids[("function", name, level)] = self.new_id("function")
        self._emit(calls.Function(made, name, level))
        return made

    def scope(self, parent: int, module: str, cls: str, nth: int) -> int:
        found = self._ids.get(("scope", parent, module, cls, nth))
        if found is not None:
            return found
        made = self._ids[("scope", parent, module, cls, nth)] = self.new_id("scope", first=1)
        self._scopes[made] = record = calls.Scope(made, parent, module, cls, nth)
        self._emit(record)
        return made

    def module(self, scope: int) -> str:
        """The innermost module's qualified name; empty at the root."""
        return self._scopes[scope].module if scope else ""

    def nth(self, scope: int) -> int:
        """Which call of its module this scope is, counted in its parent."""
        return self._scopes[scope].nth if scope else 0

    def nth_below_root(self, scope: int) -> str:
        """`[1]` for what runs the second time within one forward of the root module, in itself or in its parent."""
        told = ""
        while scope and self._scopes[scope].parent:
            nth = self._scopes[scope].nth
            told = f"[{nth}]{told}" if nth else told
            scope = self._scopes[scope].parent
        return told

    def context(self, step: int, microbatch: int, phase: calls.Phase, labels: dict[str, str | int]) -> int:
        key = (step, microbatch, phase, tuple(sorted(labels.items())))
        found = self._contexts.get(key)
        if found is not None:
            return found
        made = self._contexts[key] = self.new_id("context")
        self.emit_context(calls.Context(made, step, microbatch, phase, dict(labels)))
        return made

    def step_ended(self) -> None:
        """Contexts are of one step: should its number come again, it gets new ones."""
        self._contexts.clear()

    def origin(self, kind: calls.OriginKind, name: str) -> int:
        found = self._ids.get(("origin", kind, name))
        if found is not None:
            return found
        made = self._ids[("origin", kind, name)] = self.new_id("origin")
        self._emit(calls.Origin(made, kind, name))
        return made

    def scalars(self, values: dict[str, str]) -> int:
        key = ("scalars", *values.items())
        found = self._ids.get(key)
        if found is not None:
            return found
        made = self._ids[key] = self.new_id("scalars")
        self._emit(calls.Scalars(made, values))
        return made

    def state_names(self, group: str, names: tuple[str, ...], kinds: tuple[int, ...]) -> int:
        key = ("state_names", group, names, kinds)
        found = self._ids.get(key)
        if found is not None:
            return found
        made = self._ids[key] = self.new_id("state_names")
        self._emit(calls.StateNames(made, group, names, kinds))
        return made
