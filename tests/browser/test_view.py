"""The web view in a real Chromium: a million calls by keyboard alone, pages for everybody, hostile names (SU-12)."""

import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from paritrace.loopback.listening import HOST, bound, running
from paritrace.reports.shelf import key_of
from paritrace.testing.grown_results import grow
from paritrace.web.application import application
from tests.web.shelves import MARKUP, ODD, write_pair

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from tests.browser.chromium import Scheme, Window
    from tests.browser.conftest import Opening

pytestmark = pytest.mark.slow

MILLION = 1_000_000
TOKEN = "a-token"
SCROLLED = "part => { const box = document.getElementById('vtable'); box.scrollTop = box.scrollHeight * part; }"
READ = "address => fetch(address, {mode: 'no-cors', credentials: 'include'}).then(() => 'read', () => 'refused')"
MOST_IN_DOM = 100  # PF-20
MOST_TABS = 80  # of one page: more would be no way for a keyboard


@contextmanager
def served(path: Path) -> Generator[str]:
    """The address of a server over a path, in a thread of this process."""
    with bound(0) as listening:
        origin = f"http://{HOST}:{listening.getsockname()[1]}"
        with running(application(path, token=TOKEN, origin=origin), listening):
            yield origin


@pytest.fixture(scope="module")
def million(tmp_path_factory: pytest.TempPathFactory) -> "Generator[tuple[str, str, int]]":
    """Origin, address of a comparison of a million calls, and how many it has."""
    folder = tmp_path_factory.mktemp("million")
    kept = write_pair(folder, steps=300)
    number = grow(kept, to=MILLION)
    with served(folder) as origin:
        yield origin, f"/c/{key_of(kept)}/", number


def tab_to(page: "Page", found: str) -> None:
    """Press Tab until the focused element fulfils a condition over `e`."""
    for _ in range(MOST_TABS):
        page.keyboard.press("Tab")
        if page.evaluate(f"(() => {{ const e = document.activeElement; return {found}; }})()"):
            return
    raise AssertionError(f"no element is reached by Tab: {found}")


DRAWN = "document.getElementById('vtable')?.dataset.drawn"


def wait_for_rows(seen: "Window", said: str) -> None:
    """Wait until the table says how many rows there are, and shows them."""
    seen.until(f"document.getElementById('count')?.textContent.startsWith(arg) && {DRAWN}", said)


def cells(page: "Page", kind: str) -> list[str]:
    return page.locator(f"#rows td.{kind}").all_inner_texts()


def test_su12_a_million_calls_by_keyboard_alone(window: "Opening", million: tuple[str, str, int]) -> None:
    origin, home, number = million
    seen = window()
    _reach_the_sources(seen, origin, home)
    _follow_a_number(seen, number)
    _filter_and_sort(seen)
    _move_and_open(seen)


def _reach_the_sources(seen: "Window", origin: str, home: str) -> None:
    """From the printed address to both source lines of the first finding."""
    seen.page.goto(f"{origin}/?token={TOKEN}")
    assert TOKEN not in seen.page.url
    tab_to(seen.page, f"e.getAttribute('href') === '{home}'")
    seen.page.keyboard.press("Enter")
    seen.page.wait_for_url(f"{origin}{home}")
    for side in ("baseline", "candidate"):
        assert "z = bend(y)" in seen.page.locator(f"#first .source.{side} .marked").inner_text()


def _follow_a_number(seen: "Window", number: int) -> None:
    """From the number of pairs to the calls that it counts (P9)."""
    page = seen.page
    pairs = page.locator(".figures a").nth(2).inner_text()
    tab_to(page, "e.getAttribute('href')?.endsWith('/f/counts.paired')")
    page.keyboard.press("Enter")
    page.wait_for_url("**/f/counts.paired")
    tab_to(page, "e.textContent === 'These calls in the table'")
    page.keyboard.press("Enter")
    page.wait_for_url("**/calls?*")
    wait_for_rows(seen, f"{pairs} of {number:,}")
    assert set(cells(page, "c-side")) == {"baseline"}


def _filter_and_sort(seen: "Window") -> None:
    """Only the calls of one function, the last step first."""
    page = seen.page
    tab_to(page, "e.name === 'text'")
    page.keyboard.type("BEND")
    seen.until("document.querySelector('#rows td.c-function').textContent === 'bend'")
    assert set(cells(page, "c-function")) == {"bend"}
    tab_to(page, "e.closest('th')?.dataset.sort === 'step'")
    for way in ("ascending", "descending"):
        page.keyboard.press("Enter")
        page.wait_for_selector(f"th[data-sort=step][aria-sort={way}]")
    seen.until("Number(document.querySelector('#rows td').textContent) > 1000")


def _move_and_open(seen: "Window") -> None:
    """To the end and back, a page down, into a call; and from there back to where the table was."""
    page = seen.page
    tab_to(page, "e.id === 'calls'")
    total = int(page.locator("#calls").get_attribute("aria-rowcount") or 0) - 1
    for key, active in (("End", total - 1), ("Home", 0), ("ArrowDown", 1), ("ArrowDown", 2), ("ArrowUp", 1)):
        page.keyboard.press(key)
        assert page.locator("#calls").get_attribute("aria-activedescendant") == f"row-{active}"
        assert seen.rows_in_dom() <= MOST_IN_DOM
    page.keyboard.press("PageDown")
    seen.until(f"{DRAWN} && document.querySelector('tr.active a')")
    place = page.locator("#calls").get_attribute("aria-activedescendant")
    identity = page.locator("tr.active td.c-id").inner_text()
    page.wait_for_url("**row=*")
    page.keyboard.press("Enter")
    page.wait_for_url("**/call/baseline/0/*")
    assert f"baseline:{identity}" in page.locator("main").inner_text()
    assert "different" in page.locator("#slots").inner_text()
    page.go_back()
    page.wait_for_url("**row=*")
    seen.until(DRAWN)
    assert page.locator("tr.active").get_attribute("id") == place
    assert set(cells(page, "c-function")) == {"bend"}


def test_su12_the_table_scrolls_to_its_end_with_few_rows_in_the_page(
    window: "Opening", million: tuple[str, str, int]
) -> None:
    origin, home, number = million
    seen = window()
    seen.page.goto(f"{origin}/?token={TOKEN}")
    seen.page.goto(f"{origin}{home}calls")
    wait_for_rows(seen, f"{number:,} calls")
    for part in (0.25, 0.5, 0.999, 1.0):
        seen.page.evaluate(SCROLLED, part)
        seen.until(f"Number(document.querySelector('#rows tr').id.slice(4)) >= arg && {DRAWN}", part * 990_000 - 20_000)
        assert seen.rows_in_dom() <= MOST_IN_DOM
    seen.until(f"document.querySelector('#rows tr:last-child')?.id === arg && {DRAWN}", f"row-{number - 1}")
    assert seen.page.locator("#rows tr").last.get_attribute("aria-rowindex") == str(number + 1)


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_su12_every_page_is_for_everybody(
    window: "Opening", million: tuple[str, str, int], width: int, scheme: "Scheme"
) -> None:
    origin, home, _ = million
    seen = window(width=width, scheme=scheme)
    seen.page.goto(f"{origin}/?token={TOKEN}")
    run = seen.page.locator("#runs a").first.get_attribute("href") or ""
    places = [
        "/",
        home,
        f"{home}calls?text=bend",
        f"{home}call/baseline/0/0",
        f"{home}undetermined",
        f"{home}f/F1",
        run,
    ]
    places += [f"{home}source?side=candidate&file=%3Cmain%3E&line=6", f"{run}verify", f"{run}check"]
    places += [f"{home}calls?status=odd"]
    for place in places:
        seen.page.goto(f"{origin}{place}")
        assert seen.violations() == [], place
        assert seen.overflow() <= 0, place
    assert [line for line in seen.console if "400" not in line] == []
    seen.console.clear()  # the last page is an error on purpose


def test_su12_hostile_names_are_harmless(window: "Opening", tmp_path: Path) -> None:
    kept = write_pair(tmp_path, names=(MARKUP, ODD, "fold"))
    home = f"/c/{key_of(kept)}/"
    with served(tmp_path) as origin:
        seen = window()
        page = seen.page
        page.goto(f"{origin}/?token={TOKEN}")
        for place in ("/", home, f"{home}calls", f"{home}f/F1", f"{home}call/baseline/0/0", f"{home}undetermined"):
            page.goto(f"{origin}{place}")
            page.wait_for_load_state("networkidle")
            assert page.evaluate("document.querySelectorAll('main img, main script').length") == 0, place
            assert page.title() != "1"
            assert "\u202e" not in page.locator("main").inner_text()
            assert seen.overflow() <= 0, place
        page.goto(f"{origin}{home}calls")
        wait_for_rows(seen, "15 calls")
        assert any(text.startswith("<img src=x") for text in cells(page, "c-function"))


def test_su12_a_page_without_script_has_stretches_and_a_form(
    chromium: "Browser", million: tuple[str, str, int]
) -> None:
    origin, home, number = million
    context = chromium.new_context(java_script_enabled=False)
    try:
        page = context.new_page()
        page.goto(f"{origin}/?token={TOKEN}")
        page.goto(f"{origin}{home}calls")
        assert page.locator("#rows tr").count() == 60
        page.get_by_role("link", name="after").click()
        assert page.locator("#rows tr").first.get_attribute("id") == "row-60"
        page.locator("input[name=text]").fill("fold")
        page.get_by_role("button", name="Filter").click()
        assert re.fullmatch(rf"[\d,]+ of {number:,} calls", page.locator("#count").inner_text())
        assert set(cells(page, "c-function")) == {"fold"}
    finally:
        context.close()


def test_su11_a_cookie_of_one_server_opens_no_other(window: "Opening", tmp_path: Path) -> None:
    write_pair(tmp_path)
    with served(tmp_path) as origin, served(tmp_path) as other:
        seen = window()
        seen.page.goto(f"{origin}/?token=wrong")
        assert "token" in seen.page.locator("body").inner_text()
        seen.page.goto(f"{origin}/?token={TOKEN}")
        # a page of the other server asks this one: the browser's own headers give it away
        seen.page.goto(f"{other}/?token={TOKEN}")
        refused = seen.page.evaluate(READ, f"{origin}/api/shelf")
        assert refused == "refused"
        seen.console.clear()  # the policy's own complaint
