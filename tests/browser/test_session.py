"""The page of a resident session in a real Chromium: for everybody, fresh, commanded (SU-10 to SU-12)."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from paritrace import Session
from paritrace.loopback.listening import HOST, bound, running
from paritrace.reports.shelf import key_of
from paritrace.session.commands import Kind
from paritrace.web.application import application
from tests.browser.hostile_workload import HOSTILE, NAME
from tests.browser.test_view import TOKEN, served
from tests.session.driving import Driven
from tests.web.sessions import write_session
from tests.web.test_session_pages import lived, publish

if TYPE_CHECKING:
    from tests.browser.chromium import Scheme, Window
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
        shows = f"session/{key_of(tmp_path / 'session')}/"
        hide = "hidden => Object.defineProperty(document, 'hidden', {value: hidden, configurable: true})"
        seen.page.evaluate(hide, arg=True)
        seen.page.wait_for_timeout(500)  # a question that is under way
        asked = sum(url.endswith(shows) for url in seen.requests)
        seen.page.wait_for_timeout(2_500)
        assert sum(url.endswith(shows) for url in seen.requests) == asked, "nobody sees it"
        seen.page.evaluate(hide, arg=False)
        with seen.page.expect_response(lambda answer: answer.url.endswith(shows)):
            seen.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        seen.page.locator("#pause").click()
        assert "stands still" in seen.page.locator("#freshness").inner_text()
        assert seen.violations() == []


@pytest.fixture(scope="module")
def resident(tmp_path_factory: pytest.TempPathFactory) -> Generator[Session]:
    """A real session of two ranks that the tests below share, in any order; each leaves it idle."""
    with Session.start(tmp_path_factory.mktemp("resident") / "session", HOSTILE, ranks=2) as session:
        yield session
        session.close()


@contextmanager
def controlled(path: Path) -> Generator[str]:
    """The address of a server over a path that takes commands."""
    with bound(0) as listening:
        origin = f"http://{HOST}:{listening.getsockname()[1]}"
        app = application(path, token=TOKEN, origin=origin, allow_control=True)
        with running(app, listening):
            yield origin


def opened(window: "Opening", origin: str, session: Session, **how: object) -> "Window":
    seen = window(**how)
    seen.page.goto(f"{origin}/?token={TOKEN}")
    seen.page.goto(f"{origin}/session/{key_of(session.directory)}/")
    return seen


def outcome(seen: "Window", words: str) -> str:
    """What the page says of a command, once it says `words`."""
    found = seen.page.locator("#outcome")
    found.filter(has_text=words).wait_for()
    return found.inner_text()


def test_su10_a_run_is_started_stopped_saved_and_loaded_from_the_page(window: "Opening", resident: Session) -> None:
    with controlled(resident.directory) as origin:
        seen = opened(window, origin, resident)
        seen.page.locator("#c-run input").fill("1000000")
        seen.page.locator("#c-run input").press("Enter")
        assert "goes on to step 1,0" in outcome(seen, "run applied at step")
        seen.page.locator("h1", has_text="Running").wait_for()
        seen.page.locator("#run-progress").wait_for()
        seen.page.locator("#c-save input").fill("by-hand")
        seen.page.locator("#c-save button").click()
        assert "save" in outcome(seen, "save applied at step")
        seen.page.locator("#c-stop button").press("Space")
        outcome(seen, "stop applied at step")
        stopped = resident.status()
        assert (stopped.target, stopped.state.value) == (None, "idle")
        seen.page.locator("#c-load option", has_text="checkpoints/by-hand").wait_for(state="attached")
        seen.page.locator("#c-load select").select_option("checkpoints/by-hand")
        seen.page.locator("#c-load button").click()
        outcome(seen, "load applied at step")
        assert seen.violations() == []
        live = resident.status().checkpoint_state
        assert live is not None
        assert live.path == "checkpoints/by-hand"


def test_su10_a_refusal_is_shown_with_the_reasons_of_all_ranks(window: "Opening", resident: Session) -> None:
    with controlled(resident.directory) as origin:
        seen = opened(window, origin, resident, width=390, scheme="dark")
        before = resident.status().config_revision
        seen.page.locator("#c-configure select").select_option("add")
        seen.page.locator("#c-configure input").fill(NAME)
        seen.page.locator("#c-configure button").click()
        told = outcome(seen, "configure refused")
        for rank in (0, 1):
            assert f"rank {rank}: " in told
        assert resident.status().config_revision == before
        assert seen.violations() == []
        assert seen.overflow() <= 0


def test_su12_hostile_metrics_are_shown_and_do_nothing(window: "Opening", resident: Session) -> None:
    resident.run(4, wait=True, autosave=False)
    with served(resident.directory) as origin:
        seen = opened(window, origin, resident)
        section = seen.page.locator("#metrics")
        names = section.locator("figcaption").all_inner_texts()
        assert {NAME, "norm", "total"} <= set(names)
        assert section.locator("img").count() == 0
        assert section.locator("path.sample").count() >= 2
        norm = section.locator("figure", has=seen.page.get_by_text("norm", exact=True))
        assert norm.locator("path.not-finite").count() == 1
        assert "</script>" not in section.inner_text(), "texts of the workload are not kept"
        section.locator("summary").click()
        assert "1e+308" in section.locator("table").inner_text()
        assert seen.page.title() != "1"
        assert seen.violations() == []


def test_su11_nothing_changes_without_the_permission_nor_from_another_page(
    window: "Opening", resident: Session
) -> None:
    before = [line.sequence for line in resident.journal()]
    address = f"/api/sessions/{key_of(resident.directory)}/commands/run"
    ask = """async ([address, mode]) => {
      const body = JSON.stringify({id: crypto.randomUUID(), generation: 1, steps: 3});
      const headers = {"Content-Type": mode === "no-cors" ? "text/plain" : "application/json"};
      try { return (await fetch(address, {method: "POST", mode, credentials: "include", headers, body})).status; }
      catch { return "blocked"; }
    }"""
    with served(resident.directory) as plain, controlled(resident.directory) as origin:
        seen = opened(window, plain, resident)
        assert "--allow-control" in seen.page.locator("#control").inner_text()
        assert seen.page.locator("form").count() == 0
        assert seen.page.evaluate(ask, [address, "cors"]) == 405
        commanding = opened(window, origin, resident)
        foreign = commanding.page.context.new_page()
        foreign.goto(f"{plain}/static/icon.svg?token={TOKEN}")  # another origin of the same machine, without our policy
        assert foreign.evaluate(ask, [origin + address, "cors"]) == "blocked"
        assert foreign.evaluate(ask, [origin + address, "no-cors"]) in ("blocked", 0)
        for one in (seen, commanding):
            one.console.clear()
    assert [line.sequence for line in resident.journal()] == before


def test_su10_the_session_is_closed_from_the_page_once_that_is_confirmed(window: "Opening", tmp_path: Path) -> None:
    session = Session.start(tmp_path / "session", HOSTILE)
    with session, controlled(session.directory) as origin:
        seen = opened(window, origin, session)
        seen.page.locator("#c-close button").click()
        assert "No command was sent" in seen.page.locator("#outcome").inner_text()
        seen.page.locator("#c-close input").check()
        seen.page.locator("#c-close button").click()
        outcome(seen, "close applied")
        seen.page.locator("#why-no-commands").wait_for()
        assert seen.page.locator("#c-run button").is_disabled()
        seen.page.locator("#freshness", has_text="The session is over").wait_for()
        assert seen.violations() == []
