"""The browser tests' own eyes: a request that leaves, a script that fails, an unreadable page are all noticed."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.browser.conftest import Opening

pytestmark = pytest.mark.slow

PAGE = "<!doctype html><html lang=en><meta charset=utf-8><title>t</title><main><h1>t</h1>{body}</main></html>"


def _write(folder: Path, body: str) -> str:
    path = folder / "page.html"
    path.write_text(PAGE.format(body=body), encoding="utf-8")
    return path.as_uri()


def test_a_quiet_page_is_quiet(window: "Opening", tmp_path: Path) -> None:
    seen = window()
    seen.page.goto(_write(tmp_path, "<p>hello</p>"))
    assert seen.requests == [(tmp_path / "page.html").as_uri()]
    assert seen.violations() == []


@pytest.mark.parametrize(
    "body",
    [
        '<img alt=x src="http://example.org/x.png">',
        '<script>fetch("https://example.org/x").catch(() => 0)</script>',
        '<link rel=stylesheet href="https://example.org/x.css">',
        '<script>new WebSocket("ws://example.org/")</script>',
    ],
)
def test_a_request_that_leaves_is_seen_and_goes_nowhere(window: "Opening", tmp_path: Path, body: str) -> None:
    seen = window()
    address = _write(tmp_path, body)
    seen.page.goto(address)
    seen.until("performance.now() > 0")
    assert [url for url in seen.foreign if "example.org" in url], body
    seen.requests.clear()
    seen.console.clear()


def test_a_failing_script_is_heard(window: "Opening", tmp_path: Path) -> None:
    seen = window()
    seen.page.goto(_write(tmp_path, '<script>throw new Error("broken")</script>'))
    assert any("broken" in line for line in seen.console)
    seen.console.clear()


def test_axe_finds_what_cannot_be_read(window: "Opening", tmp_path: Path) -> None:
    seen = window()
    seen.page.goto(_write(tmp_path, '<p style="color:#eee;background:#fff">pale</p><img src="data:image/gif;base64,">'))
    found = seen.violations()
    assert [line.partition(" ")[0] for line in found] == ["color-contrast", "image-alt"]
    seen.console.clear()
