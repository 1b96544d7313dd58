"""The standard library's own tests come out alike rewritten and not (N-18)."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
WAIT_SECONDS = 900.0
# Of the library's tests those of the language itself, and those that look at callers, frames and names.
MODULES = (
    *("test_asyncgen", "test_class", "test_closure", "test_collections", "test_contextlib", "test_coroutines"),
    *("test_dataclasses", "test_decorators", "test_descr", "test_enum", "test_except_star", "test_exceptions"),
    *("test_extcall", "test_fstring", "test_functools", "test_generators", "test_genexps", "test_inspect"),
    *("test_keywordonlyarg", "test_listcomps", "test_named_expressions", "test_patma", "test_positional_only_arg"),
    *("test_scope", "test_super", "test_traceback", "test_typing", "test_unpack_ex", "test_warnings", "test_with"),
    "test_yield_from",
)
# `inspect.getclosurevars` lists the builtins that a function names; rewritten, it names the probes among them.
LISTS_BUILTINS = "TestGetClosureVars."


def outcomes(mode: str, into: Path, modules: list[str]) -> dict[str, Any]:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-m", "tests.capture.rewriting.outcomes", mode, str(into), *modules]
    done = subprocess.run(
        command, cwd=into.parent, env=environment, capture_output=True, timeout=WAIT_SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told: dict[str, Any] = json.loads(into.read_text())
    return told


@pytest.mark.slow
def test_n18_the_standard_librarys_own_tests_come_out_alike(tmp_path: Path) -> None:
    package = pytest.importorskip("test", reason="this Python comes without the tests of its library")
    folder = Path(package.__file__).parent
    modules = [name for name in MODULES if (folder / f"{name}.py").is_file() or (folder / name).is_dir()]
    if not modules:
        pytest.skip("this Python comes without the tests of its library")
    plain = outcomes("plain", tmp_path / "plain.json", modules)
    rewritten = outcomes("rewritten", tmp_path / "rewritten.json", modules)
    apart = {
        name: (plain["outcomes"].get(name), rewritten["outcomes"].get(name))
        for name in plain["outcomes"].keys() | rewritten["outcomes"].keys()
        if plain["outcomes"].get(name) != rewritten["outcomes"].get(name) and LISTS_BUILTINS not in name
    }
    assert apart == {}
    assert len(plain["outcomes"]) > 1000
    assert rewritten["files"] >= len(modules)
    assert rewritten["observed"] > 100_000
