"""Variables of the workload's functions: read as they are, and nothing of the reading left behind (CA-25, CA-34)."""

import gc
import inspect
import sys
import weakref
from types import FrameType

import pytest

from paritrace.capture.context_variables import MAX_TEXT, ContextVariables
from paritrace.capture.plans import ContextVariable


class Held:
    """Something that must be let go when the function lets go of it."""


def reading(function: str, *names: str) -> ContextVariables:
    chosen = [ContextVariable("here.py", function, name) for name in names]
    return ContextVariables(chosen, lambda path: "here.py" if path == __file__ else None)


def calling() -> FrameType:
    """The frame of the caller's caller."""
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    assert frame.f_back.f_back is not None
    return frame.f_back.f_back


def of_caller(variables: ContextVariables) -> dict[str, str]:
    return variables.of(calling())


def scalars(variables: ContextVariables) -> dict[str, str]:  # without `assert`, which pytest gives a look at locals
    a, b, c, d, e = 3, 0.5, True, "x" * 1000, [1]
    told = of_caller(variables)
    del a, b, c, d, e
    return told


def test_ca25_scalars_are_told_as_text_and_others_by_their_type() -> None:
    assert scalars(reading("scalars", *"abcdef")) == {
        "context.a": "3",
        "context.b": "0.5",
        "context.c": "True",
        "context.d": "x" * MAX_TEXT,
        "context.e": "<not a scalar: list>",
        "context.f": "<unbound>",
    }


def test_ca25_other_functions_and_files_have_none() -> None:
    assert of_caller(reading("another", "a")) == {}
    elsewhere = ContextVariables([ContextVariable("here.py", "<module>", "a")], lambda _: None)
    assert of_caller(elsewhere) == {}


def letting_go(variables: ContextVariables) -> tuple[dict[str, str], Held | None]:
    number, held = 1, Held()
    there = weakref.ref(held)
    told = of_caller(variables) if number else {}
    del held
    gc.collect()
    return told, there()


def test_ca34_nothing_that_the_function_holds_is_held_by_our_reading() -> None:
    assert letting_go(reading("letting_go", "number")) == ({"context.number": "1"}, None)


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="reading a frame's variables makes no copy that it keeps")
def test_p6_a_function_that_looks_at_its_own_variables_sees_what_it_saw() -> None:
    def looking(variables: ContextVariables) -> tuple[list[str], dict[str, str]]:
        seen = locals()
        later = 1
        told = of_caller(variables)
        return sorted(seen) if later else [], told

    seen, told = looking(reading(looking.__qualname__, "later"))
    assert told == {"context.later": "<not read: the function looks at its own locals>"}
    assert not {"later", "told"}.intersection(seen)


def test_ca25_a_module_is_read_and_left_as_it_is() -> None:
    made: list[ContextVariables] = []
    space: dict[str, object] = {"found": None, "of": lambda: made[0].of(calling()), "__name__": "m"}
    made.append(ContextVariables([ContextVariable("here.py", "<module>", "epoch")], lambda _: "here.py"))
    exec(compile("epoch = 7\nfound = of()\n", "m.py", "exec"), space)
    assert space["found"] == {"context.epoch": "7"}
    assert space["epoch"] == 7
