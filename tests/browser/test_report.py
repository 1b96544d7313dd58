"""The report in a real browser, from file://: no request, no violation, by keyboard, at both widths (SU-7, SU-12)."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from paritrace.compare.checks_result import Evidence, Outcome
from paritrace.compare.result import LADDER, Comparison, LadderRow, Ledger, LedgerEntry
from paritrace.compare.rows import CallRow
from paritrace.reports.formats import OfCheck, OfComparison
from paritrace.reports.html import report
from tests.reports.call_rows import rows
from tests.reports.comparisons import parted
from tests.reports.html.test_pages import HOSTILE
from tests.reports.html.test_report import Held, many
from tests.reports.test_check_screen import checked, invariant

if TYPE_CHECKING:
    from playwright.sync_api import Dialog

    from tests.browser.chromium import Scheme, Window

    Opening = Callable[..., Window]

pytestmark = pytest.mark.slow


def whole() -> Comparison:
    """A comparison that fills every part of the page."""
    entries = tuple(
        LedgerEntry(
            rank=0,
            step=number // 8,
            phase="forward",
            module=f"layers.{number}",
            function="Linear",
            baseline_record_id=(211, 212)[number % 2],
            candidate_record_id=(211, 214)[number % 2],
            error=10.0 ** -(number % 7),
            expected=1e-6,
            inside_up_to=1e-4,
            beyond=number % 7 < 4,
            figure="error",
            undetermined_before=number % 5 == 0,
        )
        for number in range(24)
    )
    ladders = tuple(LadderRow(0, "X=~?.=XXXXXX"[: len(LADDER)], rank, f"dp {rank}, tp 0") for rank in range(4))
    steps = tuple(replace(ladders[0], rank=-1, coordinate="", step=step) for step in range(3))
    return replace(parted(), ledger=Ledger(entries, total=99), ladder_by_rank=ladders, ladder_by_step=steps, outside=())


def written(place: Path, comparison: Comparison, calls: list[CallRow]) -> str:
    sink = Held()
    report.comparison(OfComparison(comparison, calls), sink)
    path = place / "report.html"
    path.write_bytes(sink.data)
    return path.as_uri()


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return written(tmp_path, whole(), rows())


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark"), (1280, "dark")])
def test_su12_no_violation_no_request_no_sideways_scrolling(
    window: "Opening", uri: str, scheme: "Scheme", width: int
) -> None:
    found = window(width=width, scheme=scheme)
    found.page.goto(uri)
    found.page.get_by_role("button", name="baseline:212").click()
    for part in found.page.locator("details").all():
        part.evaluate("one => { one.open = true }")
    assert found.violations() == []
    assert found.overflow() == 0
    assert found.requests == [uri]


def test_su12_by_keyboard_alone_to_the_first_finding_and_its_source(window: "Opening", uri: str) -> None:
    found = window()
    page = found.page
    page.goto(uri)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    reached = []
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate("document.activeElement.getAttribute('aria-label') || document.activeElement.textContent")
        )
        if reached[-1] == "Source of the candidate":
            break
    assert reached[0] == "[F1]"
    assert "Source of the baseline" in reached
    assert reached[-1] == "Source of the candidate"
    page.locator("a.anchor", has_text="[F1]").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#evidence-F1[open]")  # opened by the event that follows the key
    evidence = page.locator("#evidence-F1")
    assert evidence.locator("ul").is_visible()


def test_the_table_is_filtered_sorted_and_opened(window: "Opening", uri: str) -> None:
    page = window().page
    page.goto(uri)
    lines = page.locator("table.calls > tbody > tr")
    assert lines.count() == 7
    page.get_by_label("status").select_option("unaligned")
    assert lines.count() == 4
    assert "1 to 4 of 4 here" in page.locator("#calls-count").inner_text()
    page.get_by_label("status").select_option("")
    page.get_by_label("call, module or site contains").fill("bmm")
    assert lines.count() == 1
    page.get_by_label("call, module or site contains").fill("")
    page.get_by_role("columnheader", name="site").get_by_role("button").click()
    assert page.get_by_role("columnheader", name="site").get_attribute("aria-sort") == "ascending"
    sites = page.locator("table.calls > tbody > tr > td:nth-child(8)").all_inner_texts()
    assert sites == sorted(sites)
    button = page.get_by_role("button", name="baseline:212")
    button.press("Enter")
    assert button.get_attribute("aria-expanded") == "true"
    assert "(uninitialised)" in page.locator(".details").inner_text()


def test_p9_a_dot_and_a_call_lead_to_the_row_of_their_call(window: "Opening", uri: str) -> None:
    page = window().page
    page.goto(uri)
    page.locator("svg a").nth(1).dispatch_event("click")
    page.wait_for_function("location.hash === '#call-baseline-0-212'")
    assert page.locator("#call-baseline-0-212 button").get_attribute("aria-expanded") == "true"
    page.goto(uri + "#call-candidate-0-216")  # the candidate's call of a pair: its pair opens
    assert page.locator("#call-baseline-0-213 button").get_attribute("aria-expanded") == "true"


def test_colours_follow_the_system_until_the_button_is_used(window: "Opening", uri: str) -> None:
    page = window(scheme="dark").page
    page.goto(uri)
    colour = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(colour)
    page.get_by_role("button", name="Switch between light and dark colours").click()
    light = page.evaluate(colour)
    assert light != dark
    page.reload()
    assert page.evaluate(colour) == light


def test_a_command_is_copied_and_that_is_said(window: "Opening", uri: str) -> None:
    page = window().page
    page.goto(uri)
    page.get_by_role("button", name="Copy command 1").click()
    page.wait_for_function("document.getElementById('said').textContent !== ''")
    assert page.locator("#said").text_content() in ("Copied", "Copying is not allowed here")


def test_su12_hostile_names_run_nothing_and_change_nothing(window: "Opening", tmp_path: Path) -> None:
    place = replace(parted().findings[0].place, module=HOSTILE, candidate_source=HOSTILE, function=HOSTILE)
    hostile = replace(whole(), findings=(replace(parted().findings[0], sentence=HOSTILE, place=place),))
    calls = [replace(one, module=HOSTILE, function=HOSTILE, scalars=HOSTILE) for one in rows()]
    found = window()
    dialogs: list[str] = []

    def refuse(dialog: "Dialog") -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    found.page.on("dialog", refuse)
    found.page.goto(written(tmp_path, hostile, calls))
    assert found.page.locator("img").count() == 0
    assert dialogs == []
    assert "onerror=alert(1)" in found.page.locator("h1").inner_text()


def test_su7_two_thousand_rows_are_drawn_a_page_at_a_time(window: "Opening", tmp_path: Path) -> None:
    found = window()
    found.page.goto(written(tmp_path, parted(), list(many(2_500))))
    assert found.rows_in_dom() < 150
    assert "1 to 50 of 2,000 here" in found.page.locator("#calls-count").inner_text()
    found.page.get_by_role("button", name="Next", exact=True).click()
    assert "51 to 100 of 2,000 here" in found.page.locator("#calls-count").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_cp25_a_check_has_no_violation_either(window: "Opening", tmp_path: Path, scheme: "Scheme") -> None:
    evidence = Evidence(facts=("a fact",), names=("a.name",), total=9, file="train.py", line=3, record_ids=(4,))
    statuses = enumerate(Outcome)
    made = checked(*(invariant(f"loss.finite.{number}", status, evidence=evidence) for number, status in statuses))
    sink = Held()
    report.check(OfCheck(made), sink)
    path = tmp_path / "check.html"
    path.write_bytes(sink.data)
    found = window(width=390, scheme=scheme)
    found.page.goto(path.as_uri())
    assert found.violations() == []
    assert found.overflow() == 0
