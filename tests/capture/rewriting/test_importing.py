"""Files rewritten as they are imported behave and look as they are; the checkout is not written (CA-10, N-18)."""

import hashlib
import importlib
import linecache
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from paritrace.capture.rewriting import probes
from paritrace.capture.rewriting.importing import SourceRewriter, rewritten_before
from paritrace.capture.rewriting.tree import Rewritten

NESTED = 900  # operators in a row: the interpreter compiles them, a walk of the tree comes to its limit
ODD = '''
"""A module whose behaviour depends on who calls whom."""
import logging, sys, traceback, warnings
from collections import namedtuple
from typing import NamedTuple

Pair = namedtuple("Pair", "a b")


class Point(NamedTuple):
    x: int = 0


class Base:
    def __init__(self, value):
        self.value = value

    def made(self):
        return type(self)(self.value + 1)


class Derived(Base):
    def made(self):
        return super().made()


def where():
    return sys._getframe(1).f_lineno, sys._getframe(1).f_code.co_name


def trace():
    try:
        return int("7") + int(str(len([1])) + "x")
    except ValueError:
        return traceback.format_exc()


def nested():
    try:
        Base(1).made(
            where(),
        )
    except TypeError:
        return traceback.format_exc()


def warned():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("here", stacklevel=2)
    return caught[0].filename, caught[0].lineno


def logged():
    found = logging.getLogger("odd").findCaller()
    return found[1:3]


def depth():
    number = 0

    def deeper():
        nonlocal number
        number += 1
        deeper()

    try:
        deeper()
    except RecursionError:
        return number


def generated():
    def numbers():
        for i in range(3):
            got = yield (yield i)
            if got:
                yield str(got)

    one = numbers()
    return [next(one), one.send("a"), next(one), list(one)]


def locals_seen(a, b=2):
    return sorted(locals()), sorted(vars()), eval("a + b")


def results():
    return {
        "where": where(), "trace": trace(), "nested": nested(), "warned": warned(), "logged": logged(),
        "depth": depth(), "generated": generated(), "locals": locals_seen(1), "pair": Pair(1, *[2])._asdict(),
        "derived": Derived(1).made().value, "module": Point().__class__.__module__, "pairs": Pair.__module__,
    }
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "odd.py").write_text(ODD)
    (tmp_path / "broken.py").write_text("def f(:\n    pass\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    importlib.invalidate_caches()
    yield tmp_path
    for name in ("odd", "broken"):
        sys.modules.pop(name, None)
    linecache.clearcache()
    probes.be_silent()


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def handed_in(_: int, __: str | int, value: Any) -> Any:
    return value


def rewriting(folder: Path | None, seen: list[Rewritten | str]) -> SourceRewriter:
    """A rewriter of a folder's files, or of none, that appends what becomes of each."""
    return SourceRewriter(
        wants=lambda path: folder is not None and path.startswith(str(folder)),
        seen=lambda file: seen.append(file.made),
        left=lambda _, reason: seen.append(reason),
    )


def imported(name: str, folder: Path, seen: list[Rewritten | str]) -> ModuleType:
    rewriter = rewriting(folder, seen)
    rewriter.install()
    try:
        return importlib.import_module(name)
    finally:
        rewriter.remove()


@pytest.mark.parametrize("observed", [False, True])
def test_n18_tracebacks_warnings_logging_recursion_and_frames_are_those_of_the_plain_program(
    package: Path, *, observed: bool
) -> None:
    before = digests(package)
    seen: list[Rewritten | str] = []
    probes.be_silent()
    module = imported("odd", package, seen)
    (made,) = seen
    assert isinstance(made, Rewritten)
    assert len(made.calls) > 40
    assert digests(package) == before  # no bytecode either
    count = 0

    def counting(number: int, value: Any) -> Any:
        nonlocal count
        count += 1
        return value

    if observed:
        probes.listen(probes.Probes(counting, handed_in, handed_in, counting))
    told = module.results()
    probes.be_silent()
    del sys.modules["odd"]
    plain = importlib.import_module("odd").results()
    assert told == plain
    assert "^^^" in plain["trace"]
    assert (count > 100) is observed


def test_ca10_only_wanted_files_are_rewritten_and_bytecode_of_others_is_kept_as_ever(package: Path) -> None:
    seen: list[Rewritten | str] = []
    rewriter = rewriting(None, seen)
    rewriter.install()
    importlib.import_module("odd")
    rewriter.remove()
    assert seen == []
    assert list(package.glob("__pycache__/odd.*.pyc"))


def test_ca10_stale_bytecode_is_not_taken_for_a_rewritten_file(package: Path) -> None:
    importlib.import_module("odd")
    del sys.modules["odd"]
    seen: list[Rewritten | str] = []
    probes.be_silent()
    assert imported("odd", package, seen).results()
    assert len(seen) == 1


def test_a_syntax_error_is_told_as_the_interpreter_tells_it(package: Path) -> None:
    with pytest.raises(SyntaxError) as told:
        imported("broken", package, [])
    with pytest.raises(SyntaxError) as plain:
        importlib.import_module("broken")
    assert str(told.value) == str(plain.value)
    assert told.value.filename == plain.value.filename == str(package / "broken.py")


def test_a_file_nested_too_deeply_runs_as_it_is_and_is_named(package: Path) -> None:
    (package / "deep.py").write_text("x = " + "+".join(["1"] * NESTED) + "\n")
    seen: list[Rewritten | str] = []
    module = imported("deep", package, seen)
    del sys.modules["deep"]
    assert vars(module)["x"] == NESTED
    assert seen == ["nested too deeply"]


def test_two_rewriters_number_apart_and_each_finds_the_modules_behind_it(package: Path) -> None:
    seen: list[Rewritten | str] = []
    probes.be_silent()
    length = len(sys.meta_path)
    first = rewriting(None, seen)
    first.install()
    try:
        module = imported("odd", package, seen)
    finally:
        first.remove()
    assert len(seen) == 1
    assert len(sys.meta_path) == length
    assert module.__spec__ is not None


def test_what_the_parser_warns_of_names_the_file(package: Path) -> None:
    (package / "odd.py").write_text("import re\nDIGIT = '\\d'\n")
    told: list[list[tuple[str, int, str]]] = []
    for plain in (False, True):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            importlib.import_module("odd") if plain else imported("odd", package, [])
        told.append([(one.filename, one.lineno, str(one.message)) for one in caught])
        del sys.modules["odd"]
    assert told[0] == told[1]
    assert told[0][0][:2] == (str(package / "odd.py"), 2)


def test_ca1_files_of_two_rewriters_have_numbers_of_their_own_and_both_know_all_calls(package: Path) -> None:
    (package / "broken.py").write_text("print(len('abc'), end='')\n")
    first, second = list[Rewritten | str](), list[Rewritten | str]()
    probes.be_silent()
    imported("odd", package, first)
    imported("broken", package, second)
    numbers = [one.number for made in (*first, *second) if isinstance(made, Rewritten) for one in made.calls]
    assert len(set(numbers)) == len(numbers) > 40
    calls = rewriting(None, []).calls
    assert [calls[number].number for number in numbers] == numbers
    before = {file.path: file for file in rewritten_before()}
    assert before[str(package / "broken.py")].made is second[0]
    assert before[str(package / "odd.py")].source == ODD.encode()


def test_an_import_is_found_also_where_the_capture_ends_meanwhile(package: Path) -> None:
    rewriter = rewriting(package, [])
    rewriter.install()
    finder = sys.meta_path[0]
    rewriter.remove()
    spec = finder.find_spec("odd", None)
    assert spec is not None
    assert spec.origin == str(package / "odd.py")
