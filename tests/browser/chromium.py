"""A real headless Chromium whose every request is written down: what a page needs must lie on this machine (SU-11)."""

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, sync_playwright

EXECUTABLES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",  # a name that leaks is not even looked up
)
HERE = "127.0.0.1"
LOCAL_SCHEMES = frozenset({"file", "data", "blob", "about"})
WAIT_MS = 60_000  # of one step of a page: hundreds of times what it takes, for a machine that does much else
AXE_TAGS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")

_UNTIL = """async (arg) => {
  const end = performance.now() + %d;
  while (!(%s)) {
    if (performance.now() > end) return false;
    await new Promise(requestAnimationFrame);
  }
  return true;
}"""

Scheme = Literal["light", "dark"]
LAPTOP = 1280
PHONE = 390


def executable() -> str | None:
    """The path of an installed Chromium, None without one."""
    return next((found for name in EXECUTABLES if (found := shutil.which(name))), None)


@contextmanager
def started() -> Generator[Browser]:
    """A browser; closed with everything it opened when the block ends."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(), args=list(ARGUMENTS), timeout=WAIT_MS)
        try:
            yield browser
        finally:
            browser.close()


def leaves(url: str) -> bool:
    """Whether a request for `url` goes beyond this machine."""
    parts = urlsplit(url)
    return parts.hostname != HERE and (parts.scheme not in LOCAL_SCHEMES or bool(parts.hostname))


class Window:
    """One page and all that happened in it: its requests, what it wrote to the console, its uncaught errors."""

    def __init__(self, context: BrowserContext, *, axe: str) -> None:
        self.requests: list[str] = []
        self.console: list[str] = []
        self.refused: list[str] = []  # by the policy of a page: it never left the browser
        self._axe = axe
        context.set_default_timeout(WAIT_MS)
        context.on("request", lambda request: self.requests.append(request.url))
        context.on("requestfailed", self._fail)
        context.on("weberror", lambda error: self.console.append(f"uncaught: {error.error}"))
        context.on("console", self._hear)
        self.page: Page = context.new_page()
        self.page.on("websocket", lambda socket: self.requests.append(socket.url))

    def _fail(self, request: Request) -> None:
        if request.failure == "csp":
            self.refused.append(request.url)

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.console.append(f"{message.type}: {message.text}")

    @property
    def foreign(self) -> list[str]:
        """Every request that left the machine or would have."""
        return [url for url in self.requests if leaves(url)]

    def violations(self) -> list[str]:
        """What axe-core finds wrong on the page as it stands: rule, impact and the elements."""
        heard = len(self.console)
        self.page.evaluate(self._axe)
        options = {"runOnly": {"type": "tag", "values": list(AXE_TAGS)}, "preload": False}
        found: dict[str, Any] = self.page.evaluate("options => axe.run(document, options)", options)
        del self.console[heard:]  # a strict policy refuses styles that axe itself tries to set
        return [_told(violation) for violation in found["violations"]]

    def until(self, condition: str, arg: object = None) -> None:
        """Wait, frame by frame, until a JavaScript condition over `arg` holds.

        Playwright's own `wait_for_function` evaluates text inside the page, which a strict policy rightly refuses.
        """
        held: bool = self.page.evaluate(_UNTIL % (WAIT_MS, condition), arg)
        assert held, f"{condition} did not come to hold; the page says: {self.page.locator('main').inner_text()[:400]}"

    def rows_in_dom(self) -> int:
        """How many table rows the page holds, seen or not (PF-20)."""
        return self.page.locator("tr").count()

    def overflow(self) -> int:
        """By how many pixels the page is wider than its window."""
        wider: int = self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        return wider

    def picture(self, path: Path, *, whole: bool = True) -> None:
        """Write a screenshot."""
        self.page.screenshot(path=path, full_page=whole)


def _told(violation: dict[str, Any]) -> str:
    nodes = "; ".join(f"{node['html'][:120]} ({node['failureSummary'][:200]})" for node in violation["nodes"][:4])
    return f"{violation['id']} ({violation['impact']}): {nodes}"
