"""Fixtures that every test may use."""

import gc
import os
from collections.abc import Callable
from pathlib import Path

import pytest

GOLD = Path(__file__).parent / "gold"

Golden = Callable[[str, str], None]


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
