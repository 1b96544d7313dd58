"""Fixtures that every test may use."""

import gc
import os
from collections.abc import Callable
from pathlib import Path

import pytest

GOLD = Path(__file__).parent / "gold"
SLOW = "slow"

Golden = Callable[[str, str], None]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`-m slow` alone imports no module that has no such test: its text does not have the word."""
    is_left_out = config.option.markexpr == SLOW and collection_path.suffix == ".py" and not _says_slow(collection_path)
    return True if is_left_out else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What `-m slow` leaves out has to be what is not marked: a mark that a module inherits stands in its text too."""
    marked = {item.path for item in items if item.get_closest_marker(SLOW) is not None}
    hidden = sorted(str(path) for path in marked if not _says_slow(path))
    if hidden:
        raise pytest.UsageError(f"slow tests in modules that do not say so: {', '.join(hidden)}")


def _says_slow(path: Path) -> bool:
    return SLOW in path.read_text(encoding="utf-8")


def pytest_collection_finish() -> None:
    """What is there before the first test is left out of what captures and the collector of garbage look through."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def outside_of_a_workflow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where GitHub runs the tests, commands would annotate and summarise by themselves."""
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def golden() -> Golden:
    """`golden(name, text)`: the text equals tests/gold/NAME to the byte; `make golden` rewrites the file."""

    def compare(name: str, text: str) -> None:
        path = GOLD / name
        if os.environ.get("PARITRACE_UPDATE_GOLDEN") == "1":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.is_file(), f"no golden file {path}: make golden writes it"
        assert text == path.read_text(encoding="utf-8")

    return compare
