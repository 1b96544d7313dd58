"""The page of a resident session in a real Chromium: for everybody, and fresh while it lives (SU-10, SU-12)."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from paritrace.reports.shelf import key_of
from paritrace.session.commands import Kind
from tests.browser.test_view import TOKEN, served
from tests.session.driving import Driven
from tests.web.sessions import write_session
from tests.web.test_session_pages import lived, publish

if TYPE_CHECKING:
    from tests.browser.chromium import Scheme
    from tests.browser.conftest import Opening

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_su12_a_session_is_for_everybody(window: "Opening", tmp_path: Path, width: int, scheme: "Scheme") -> None:
    session = write_session(tmp_path / "session")
    with served(tmp_path) as origin:
        seen = window(width=width, scheme=scheme)
        seen.page.goto(f"{origin}/?token={TOKEN}")
        seen.page.locator("#sessions a").click()
        assert seen.page.url == f"{origin}/session/{key_of(session)}/"
        assert seen.violations() == []
        assert seen.overflow() <= 0
        picture = seen.page.locator("#previews img")
        assert picture.evaluate("one => one.naturalWidth") == 40
        assert seen.page.locator("main script").count() == 0
        assert seen.page.title() != "1"
        seen.page.locator("summary", has_text="Where rank 0 was").click()
        assert "line 3 in step" in seen.page.locator("#stacks-1-0").inner_text()


def test_su10_the_page_follows_a_session_that_lives_until_it_is_paused(window: "Opening", tmp_path: Path) -> None:
    with lived(tmp_path / "session") as room, served(tmp_path) as origin:
        seen = window()
        seen.page.goto(f"{origin}/?token={TOKEN}")
        seen.page.goto(f"{origin}/session/{key_of(tmp_path / 'session')}/")
        assert seen.page.locator("h1").inner_text().startswith("Loading")
        assert seen.violations() == []
        seen.page.locator("summary", has_text="Where rank 0 was").click()
        driven = Driven().built()
        driven.ask("r", Kind.RUN, steps=7)
        publish(room, driven.state)
        seen.page.locator("h1", has_text="Idle").wait_for(timeout=30_000)
        assert seen.page.locator("#stacks-1-0").get_attribute("open") is not None, "what was opened stays open"
        seen.page.locator("#pause").click()
        assert "stands still" in seen.page.locator("#freshness").inner_text()
        assert seen.violations() == []
