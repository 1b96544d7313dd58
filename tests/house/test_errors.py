"""Every error code of the source has an entry in docs/errors.md, and no entry is left over (SU-5)."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from paritrace.files import faults
from tests.house.documents import ROOT, headings_of

SOURCE = ROOT / "src" / "paritrace"
PASSED_ON = {
    SOURCE / "errors.py",
    SOURCE / "automation" / "protocol" / "troubles.py",
    SOURCE / "files" / "faults.py",
    SOURCE / "runs" / "adapters.py",
    SOURCE / "session" / "told_errors.py",
}  # `code=code`: the value is listed elsewhere


def codes_in(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and any(keyword.arg == "fix" for keyword in node.keywords):
            for keyword in node.keywords:
                if keyword.arg == "code" and path not in PASSED_ON:
                    yield from _texts(keyword.value, path=path)


def _texts(value: ast.expr, *, path: Path) -> Iterator[str]:
    if isinstance(value, ast.IfExp):
        yield from _texts(value.body, path=path)
        yield from _texts(value.orelse, path=path)
    else:
        assert isinstance(value, ast.Constant), f"{path}:{value.lineno}: a code is a literal, so that it can be found"
        yield str(value.value)


@cache
def codes_of_the_source() -> frozenset[str]:
    literal = {code for path in SOURCE.rglob("*.py") for code in codes_in(path)}
    return frozenset(literal | {code for code, _ in faults._MENDS.values()} | {faults._UNKNOWN[0]})


def test_every_code_has_an_entry_and_every_entry_a_code() -> None:
    entries = headings_of(ROOT / "docs" / "errors.md", 2)
    assert entries == sorted(set(entries))
    assert set(entries) == codes_of_the_source()


def test_codes_are_spelled_one_way() -> None:
    assert [code for code in codes_of_the_source() if not re.fullmatch(r"[a-z][a-z0-9_]*", code)] == []
