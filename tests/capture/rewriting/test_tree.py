"""What a source becomes, by its text and by what it does (CA-10, N-18)."""

import ast
import builtins
from typing import Any

import pytest

from paritrace.capture.rewriting.tree import PROBES, rewritten
from paritrace.evidence.callsites import LeftAlone

Event = tuple[Any, ...]


def through(*given: Any) -> Any:
    return given[-1]


def unparsed(source: str) -> str:
    return ast.unparse(rewritten(source, first=0).tree)


def test_ca10_a_call_hands_its_callee_its_arguments_and_its_result_through_probes() -> None:
    assert unparsed("f(a, *b, c, k=d, **e)") == (
        "__pt_out__(0, __pt_fn__(0, f)(__pt_in__(0, 'args[0]', a), *__pt_in__(0, 1, b), __pt_in__(0, 'args[*][2]', c), "
        "k=__pt_in__(0, 'kwargs.k', d), **__pt_last__(0, 'kwargs', e)))"
    )


def test_ca10_calls_are_numbered_on_and_know_the_calls_in_whose_arguments_they_stand() -> None:
    made = rewritten("f(g(x)(h()), [i() for _ in j()])", first=7)
    assert [(one.number, one.around, one.has_arguments) for one in made.calls] == [
        (7, (), True),
        (8, (7,), True),  # g(x)(h())
        (9, (7,), True),  # g(x), which is called: not in the arguments of 8
        (10, (7, 8), False),
        (11, (7,), False),
        (12, (7,), False),
    ]


@pytest.mark.parametrize(
    "source",
    [
        "super()",
        "locals()",
        "globals()",
        "vars()",
        "dir()",
        "eval('x')",
        "exec('x')",
        "compile('', '', 'exec')",
        "__import__('os')",
        "breakpoint()",
    ],
)
def test_ca10_what_depends_on_its_frame_is_left_alone_and_listed(source: str) -> None:
    made = rewritten(f"x = 1\n{source}", first=0)
    assert ast.unparse(made.tree) == ast.unparse(ast.parse(f"x = 1\n{source}"))
    assert made.left_alone == (LeftAlone(2, 0, source.partition("(")[0]),)


def test_ca10_the_call_of_what_super_gives_is_observed() -> None:
    assert unparsed("super().f(x)") == "__pt_out__(0, __pt_fn__(0, super().f)(__pt_last__(0, 'args[0]', x)))"


@pytest.mark.parametrize(
    "source",
    [
        "x: f(1)",
        "def g(a: f(1), *b: f(2)) -> f(3):\n    pass",
        "from __future__ import annotations\nx: f(1)",
        "match x:\n    case Point(a=1):\n        pass",
    ],
)
def test_ca10_annotations_and_patterns_stay(source: str) -> None:
    assert unparsed(source) == ast.unparse(ast.parse(source))


def test_n18_every_new_node_has_the_position_of_its_call() -> None:
    source = "y = f(\n    g(a),\n    b,\n)\n"
    where = {(2, 4): "g(a)", (1, 4): "f"}
    for node in ast.walk(rewritten(source, first=0).tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in PROBES:
            assert (node.lineno, node.col_offset) in where


def test_ca10_order_of_evaluation_is_pythons(monkeypatch: pytest.MonkeyPatch) -> None:
    source = """
def say(what, value=None):
    told.append(what)
    return value
def f(*args, **kwargs):
    told.append("f")
say("callee", f)(say("a", 1), *say("star", [2]), k=say("k", 3), **say("more", {"m": 4}))
"""
    outcomes: list[list[str]] = []
    for tree in (ast.parse(source), rewritten(source, first=0).tree):
        told: list[str] = []
        for name in PROBES:
            monkeypatch.setattr(builtins, name, through, raising=False)
        exec(compile(tree, "<order>", "exec"), {"told": told})
        outcomes.append(told)
    assert outcomes[0] == outcomes[1] == ["callee", "a", "star", "k", "more", "f"]


def test_ca10_the_call_begins_behind_its_last_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[Event] = []

    def recording(name: str) -> Any:
        def probe(*given: Any) -> Any:
            events.append((name, *given[:-1]))
            return given[-1]

        return probe

    for name in PROBES:
        monkeypatch.setattr(builtins, name, recording(name), raising=False)
    source = "def g(x):\n    return x\nclass A:\n    def __private(self): return g(1)\n    y = __private(None)\n"
    exec(compile(rewritten(source, first=0).tree, "<events>", "exec"), {})
    assert events == [
        ("__pt_fn__", 1),
        ("__pt_last__", 1, "args[0]"),
        ("__pt_fn__", 0),
        ("__pt_last__", 0, "args[0]"),
        ("__pt_out__", 0),
        ("__pt_out__", 1),
    ]


def test_a_source_that_is_no_python_is_refused_as_compile_does() -> None:
    with pytest.raises(SyntaxError):
        rewritten("f(", first=0)
    with pytest.raises(SyntaxError):
        rewritten(b"\xff = 1", first=0)
