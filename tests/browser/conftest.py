"""Fixtures of the tests that look at pages with a real browser (SU-12)."""

from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from importlib.resources import files
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.browser.chromium import Scheme, Window

    Opening = Callable[..., Window]


def why_not() -> str:
    """Why no browser test can run here; empty where they can."""
    for package in ("playwright", "axe_playwright_python"):
        if find_spec(package) is None:
            return f"{package} is not installed: pip install -r requirements/slow.txt -c requirements/constraints.txt"
    from tests.browser.chromium import EXECUTABLES, executable

    return "" if executable() else f"no Chromium is installed (looked for {', '.join(EXECUTABLES)})"


@pytest.fixture(scope="module")
def chromium() -> "Generator[Browser]":
    """A headless Chromium for the tests of one module."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    from tests.browser.chromium import started

    with started() as browser:
        yield browser


@pytest.fixture(scope="session")
def axe() -> str:
    """The text of axe-core, from the development package that carries it."""
    return files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")


@pytest.fixture
def window(chromium: "Browser", axe: str) -> "Generator[Opening]":
    """`window(width=1280, scheme="light")` opens a page; at the end none has asked beyond this machine or complained.

    A test that means a page to complain empties `Window.console` after it has looked at it.
    """
    with ExitStack() as opened:
        made: list[Window] = []

        def opening(*, width: int = 1280, height: int = 800, scheme: "Scheme" = "light") -> "Window":
            found = opened.enter_context(_window(chromium, axe, size=(width, height), scheme=scheme))
            made.append(found)
            return found

        yield opening
        for one in made:
            assert one.foreign == [], "a request left the machine"
            assert one.console == [], "the page complained"


@contextmanager
def _window(browser: "Browser", axe: str, *, size: tuple[int, int], scheme: "Scheme") -> "Generator[Window]":
    from tests.browser.chromium import Window

    context = browser.new_context(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
    try:
        yield Window(context, axe=axe)
    finally:
        context.close()
