"""What the tests of pages share: rendering, and a parser that says what a browser would make of the text."""

from html.parser import HTMLParser
from itertools import pairwise

from paritrace.reports.html.links import InFile, Links
from paritrace.reports.html.templates import Chrome, asset, render

VOID = frozenset({"meta", "link", "br", "hr", "img", "input"})
NOWHERE = InFile(anchors=())


def rendered(name: str, page: object, *, links: Links = NOWHERE) -> str:
    chrome = Chrome(title="a page", style=asset("style.css"), script=asset("page.js"))
    return render(name, page=page, chrome=chrome, links=links)


class Seen(HTMLParser):
    """Elements as they nest; raises AssertionError where one is closed that is not open."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1] == tag, f"</{tag}> closes <{self.open[-1]}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("script", "style"):
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def ids(self) -> list[str]:
        return [found["id"] or "" for _, found in self.elements if "id" in found]


def seen(markup: str) -> Seen:
    """Parses a whole page; raises AssertionError where it is not well formed."""
    found = Seen()
    found.feed(markup)
    found.close()
    assert found.open == []
    return found


def assert_whole(markup: str) -> Seen:
    """What holds of every page: well formed, ids once, every inner link has its target, headings without a jump."""
    found = seen(markup)
    ids = found.ids()
    assert len(ids) == len(set(ids)), sorted(one for one in ids if ids.count(one) > 1)
    inner = {
        (attrs.get("href") or "")[1:] for tag, attrs in found.elements if (attrs.get("href") or "").startswith("#")
    }
    inner = {one for one in inner if not one.startswith("call-")}  # rows of a table that a script draws
    assert inner <= set(ids), inner - set(ids)
    levels = [int(tag[1]) for tag, _ in found.elements if tag in {"h1", "h2", "h3", "h4"}]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    return found
