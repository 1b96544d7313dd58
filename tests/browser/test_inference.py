"""The pages of inference evidence in a real Chromium: for everybody, in both themes and on a phone (SU-10, SU-12)."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from paritrace.reports.shelf import key_of
from tests.browser.test_view import TOKEN, served
from tests.inference.evidence import context
from tests.web.shelves import MARKUP, ODD
from tests.web.test_inference_pages import evidence, request, write_inference

if TYPE_CHECKING:
    from tests.browser.chromium import Scheme
    from tests.browser.conftest import Opening

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")])
def test_su12_inference_evidence_is_for_everybody(
    window: "Opening", tmp_path: Path, width: int, scheme: "Scheme"
) -> None:
    hostile = request(ODD[:1000], context=context(source=ODD), status=MARKUP)
    run = write_inference(tmp_path / "run", [*evidence(), hostile])
    home = f"/r/{key_of(run)}/inference"
    with served(tmp_path) as origin:
        seen = window(width=width, scheme=scheme)
        seen.page.goto(f"{origin}/?token={TOKEN}")
        seen.page.goto(f"{origin}{home}")
        places = [one.get_attribute("href") for one in seen.page.locator("#requests tbody th a").all()]
        assert len(places) == 4
        for place in ("/", f"/r/{key_of(run)}/", home, f"{home}/events", *places):
            seen.page.goto(f"{origin}{place}")
            assert seen.violations() == [], place
            assert seen.overflow() <= 0, place
            assert seen.page.locator("main img, main script").count() == 0
            assert seen.page.title() != "1"


def test_p9_from_the_run_to_the_lines_of_an_iteration_of_a_request(window: "Opening", tmp_path: Path) -> None:
    run = write_inference(tmp_path / "run", evidence())
    with served(tmp_path) as origin:
        seen = window()
        seen.page.goto(f"{origin}/?token={TOKEN}")
        seen.page.goto(f"{origin}/r/{key_of(run)}/")
        seen.page.locator("a", has_text="Inference").first.click()
        seen.page.locator("#requests a", has_text="first").click()
        seen.page.locator("svg a", has=seen.page.locator(".iteration")).first.click()
        seen.page.wait_for_url("**/inference/events?*")
        assert seen.page.locator("h1").inner_text() == "4 lines"
        assert "k:k1" in seen.page.locator("main").inner_text()
