"""What a source file becomes: each call tells its callee, its arguments and its result (CA-10, N-18). A rule.

`f(a, k=b)` becomes `__pt_out__(N, __pt_fn__(N, f)(__pt_in__(N, "args[0]", a), k=__pt_last__(N, "kwargs.k", b)))`. Each
probe returns what it was given and has returned before `f` is entered, so that the caller of `f` is still the user's
frame: tracebacks, warnings, logging and the depth of recursion stay as they were. Every new node has the position of
the call that it belongs to.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TypeVar, cast

from paritrace.evidence.callsites import LeftAlone

FUNCTION = "__pt_fn__"
ARGUMENT = "__pt_in__"
LAST_ARGUMENT = "__pt_last__"  # behind it the call begins
RESULT = "__pt_out__"
PROBES = (FUNCTION, ARGUMENT, LAST_ARGUMENT, RESULT)  # they end in underscores: a class body does not mangle them

# What these do depends on the frame, the cell or the name that they are called by.
FRAME_SENSITIVE = frozenset(
    {"super", "locals", "globals", "vars", "dir", "eval", "exec", "compile", "__import__", "breakpoint"}
)

Node = TypeVar("Node", bound=ast.AST)
Sites = frozenset[tuple[int, int]] | None


@dataclass(frozen=True, slots=True)
class CallExpression:
    """One rewritten call. `around`: the numbers of the calls in whose arguments it stands, outermost first."""

    number: int
    line: int
    column: int
    around: tuple[int, ...]
    has_arguments: bool


@dataclass(frozen=True)
class Rewritten:
    """A module's tree, ready to be compiled, and what is in it."""

    tree: ast.Module
    calls: tuple[CallExpression, ...]
    left_alone: tuple[LeftAlone, ...]


def rewritten(source: bytes | str, path: str = "<unknown>", *, first: int, only: Sites = None) -> Rewritten:
    """Rewrite a module's source; its calls are numbered from `first`. `path` is what warnings of the parser name.

    `only` are the lines and columns at which calls are rewritten; None means all.

    Raises:
        SyntaxError, ValueError: as `compile` does for this source.
        RecursionError: nested too deeply to be walked.
    """
    tree = ast.parse(source, path)
    rewriter = _Rewriter(first, only)
    rewriter.visit(tree)
    return Rewritten(tree, tuple(rewriter.calls), tuple(rewriter.left_alone))


@dataclass
class _Rewriter(ast.NodeTransformer):
    first: int
    only: Sites = None
    calls: list[CallExpression] = field(default_factory=list[CallExpression])
    left_alone: list[LeftAlone] = field(default_factory=list[LeftAlone])
    around: tuple[int, ...] = ()

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if self.only is not None and (node.lineno, node.col_offset) not in self.only:
            self.generic_visit(node)
            return node
        if isinstance(node.func, ast.Name) and node.func.id in FRAME_SENSITIVE:
            self.left_alone.append(LeftAlone(node.lineno, node.col_offset, node.func.id))
            self.generic_visit(node)
            return node
        number = self.first + len(self.calls)
        has_arguments = bool(node.args or node.keywords)
        self.calls.append(CallExpression(number, node.lineno, node.col_offset, self.around, has_arguments))
        function = self._visited(node.func)
        outside, self.around = self.around, (*self.around, number)
        args = [self._positional(number, index, node) for index in range(len(node.args))]
        keywords = [self._keyword(number, index, node) for index in range(len(node.keywords))]
        self.around = outside
        call = ast.copy_location(ast.Call(_probe(FUNCTION, number, (), function, at=node), args, keywords), node)
        return _probe(RESULT, number, (), call, at=node)

    def _positional(self, number: int, index: int, node: ast.Call) -> ast.expr:
        argument = node.args[index]
        last = not node.keywords and index == len(node.args) - 1
        starred = any(isinstance(one, ast.Starred) for one in node.args[:index])
        if not isinstance(argument, ast.Starred):
            label: str | int = f"args[*][{index}]" if starred else f"args[{index}]"
            return _probe(_of(last), number, (label,), self._visited(argument), at=node)
        label = f"args[*][{index}]" if starred else index  # a number: its items are the arguments from there on
        value = _probe(_of(last), number, (label,), self._visited(argument.value), at=node)
        return ast.copy_location(ast.Starred(value, ast.Load()), argument)

    def _keyword(self, number: int, index: int, node: ast.Call) -> ast.keyword:
        keyword = node.keywords[index]
        label = "kwargs" if keyword.arg is None else f"kwargs.{keyword.arg}"
        value = self._visited(keyword.value)
        value = _probe(_of(index == len(node.keywords) - 1), number, (label,), value, at=node)
        return ast.copy_location(ast.keyword(keyword.arg, value), keyword)

    def _visited(self, node: ast.expr) -> ast.expr:
        return cast(ast.expr, self.visit(node))

    # Annotations are kept as text under `from __future__ import annotations`, and read by others: they stay.

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AnnAssign:
        return self._without(node, "annotation")

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        return self._without(node, "returns")

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AsyncFunctionDef:
        return self._without(node, "returns")

    def visit_TypeAlias(self, node: ast.stmt) -> ast.stmt:
        return node

    def visit_TypeVar(self, node: ast.AST) -> ast.AST:
        return node

    def _without(self, node: Node, name: str) -> Node:
        """Visit all of a node but its annotation; a body is not inside the arguments of the calls around it."""
        kept = getattr(node, name)
        setattr(node, name, None)
        outside, self.around = (
            self.around,
            () if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else (self.around),
        )
        self.generic_visit(node)
        self.around = outside
        setattr(node, name, kept)
        return node


def _of(last: bool) -> str:
    return LAST_ARGUMENT if last else ARGUMENT


def _probe(name: str, number: int, labels: tuple[str | int, ...], value: ast.expr, *, at: ast.expr) -> ast.Call:
    constants: list[ast.expr] = [_at(ast.Constant(one), at) for one in (number, *labels)]
    return _at(ast.Call(_at(ast.Name(name, ast.Load()), at), [*constants, value], []), at)


def _at(node: Node, where: ast.expr) -> Node:
    return ast.copy_location(node, where)
