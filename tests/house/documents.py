"""Reading the repository's Markdown: links, headings and code blocks, through a real parser."""

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]


class Block(NamedTuple):
    """A fenced code block; `words` is its info string: `sh run`, `python file=train.py`, `text output`."""

    line: int
    words: tuple[str, ...]
    text: str


@cache
def markdown_files() -> tuple[Path, ...]:
    """Every Markdown file that is, or is about to be, part of the repository."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return tuple(ROOT / name for name in sorted(listed.stdout.splitlines()) if (ROOT / name).is_file())


@cache
def tokens_of(path: Path) -> tuple[Token, ...]:
    return tuple(MarkdownIt("commonmark").enable("table").parse(path.read_text(encoding="utf-8")))


def links_of(path: Path) -> Iterator[str]:
    """The targets of all links and pictures."""
    for token in tokens_of(path):
        for child in token.children or ():
            target = child.attrs.get("href" if child.type == "link_open" else "src")
            if isinstance(target, str):
                yield target


def anchors_of(path: Path) -> set[str]:
    """The anchors of all headings, as code hosts make them."""
    tokens = tokens_of(path)
    titles = (tokens[i + 1].content for i, token in enumerate(tokens) if token.type == "heading_open")
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def headings_of(path: Path, level: int) -> list[str]:
    tokens = tokens_of(path)
    return [tokens[i + 1].content for i, token in enumerate(tokens) if token.tag == f"h{level}" and token.nesting == 1]


def blocks_of(path: Path) -> list[Block]:
    fences = (token for token in tokens_of(path) if token.type == "fence" and token.map)
    return [Block((token.map or [0])[0] + 1, tuple(token.info.split()), token.content) for token in fences]
