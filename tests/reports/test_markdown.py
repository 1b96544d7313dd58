"""Markdown: the first screen's statements, bounded; names of a run are never markup (SU-7, SU-12)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from msgspec.structs import replace

from paritrace.compare.result import Change
from paritrace.reports.formats import OfComparison
from paritrace.reports.headline import statement
from paritrace.reports.markdown.of_comparison import MOST, markdown
from paritrace.reports.markdown.spelling import BREAK, code, fenced, plain, table
from tests.reports import comparisons

HOSTILE = [
    "a | b",
    "`x` ``y``",
    "**bold** _it_ ~~no~~",
    "<img src=x onerror=alert(1)>",
    "[text](https://evil.example) ![i](x)",
    "line\nline\r\n\n# heading",
    "@everyone #1 org/repo#2 GH-3 https://evil.example www.evil.example mail@evil.example",
    "\x1b[31mred\x1b[0m \u202e",
    "$x^2$ :tada: &lt; &#60;",
    "- item",
    "1. one",
    "x" * 10_000,
    "```\nfence\n```",
]
READ = MarkdownIt("gfm-like", {"linkify": False, "html": True}).enable("table")
INERT = {"text", "code_inline", "text_special", "fence", "inline", "softbreak"}


def tokens(text: str) -> list[Token]:
    found: list[Token] = []
    for token in READ.parse(text):
        found.append(token)
        found += token.children or []
    return found


def text_of(markdown_text: str) -> str:
    """What a person reads of one paragraph, without the marks that break words."""
    inline = [token for token in READ.parse(markdown_text) if token.type == "inline"]
    parts = [child.content for token in inline for child in token.children or []]
    return "".join(parts).replace("\u200b", "")


@pytest.mark.parametrize("name", HOSTILE)
def test_su12_hostile_names_are_text(name: str) -> None:
    row = table(["a", "b"], [[plain(name), code(name)]])
    whole = f"before {plain(name)} after {code(name)}\n\n{row}\n\n{fenced([name])}\n\nend"
    kinds = {token.type for token in tokens(whole)}
    assert not kinds & {"html_inline", "html_block", "link_open", "image", "em_open", "strong_open", "s_open"}
    assert not kinds & {"heading_open", "bullet_list_open", "ordered_list_open", "blockquote_open", "hr"}
    assert sum(token.type == "td_open" for token in tokens(whole)) == 2
    assert sum(token.type == "fence" for token in tokens(whole)) == 1
    assert len(whole) < 6000


@pytest.mark.parametrize("name", HOSTILE)
def test_su12_at_the_begin_of_a_line_too(name: str) -> None:
    assert {token.type for token in tokens(plain(name))} <= INERT | {"paragraph_open", "paragraph_close"}


@given(st.text(min_size=1, max_size=40))
def test_plain_text_reads_as_it_was_written(name: str) -> None:
    from paritrace.reports.harmless import harmless

    found = tokens(f"x{plain(name)}x")
    assert {token.type for token in found} <= INERT | {"paragraph_open", "paragraph_close"}
    assert text_of(f"x{plain(name)}x") == f"x{harmless(name)}x".replace("\u200b", "")


def test_nobody_is_mentioned() -> None:
    text = plain("@somebody and #12 and https://evil.example")
    assert f"@{BREAK}somebody" in text
    assert f"#{BREAK}12" in text
    assert "://" not in text.replace(BREAK, "|")


def test_cp29_words_and_judgement_are_those_of_the_screen() -> None:
    parted = comparisons.parted()
    text = markdown(OfComparison(comparison=parted, rows=()))
    anchor, sentence, strength = statement(parted)
    for words in (anchor, plain(sentence), plain(strength)):
        assert words in text
    assert "| code | config | data |" in text
    assert "unequal\\_between\\_anchors" in text or "`unequal_between_anchors`" in text
    assert "```python" in text
    assert text == markdown(OfComparison(comparison=parted, rows=()))


def test_su7_it_is_bounded_and_says_what_it_leaves_out() -> None:
    changes = tuple(Change("package", f"name-{number}", "1", "2") for number in range(5000))
    finding = comparisons.parted().findings[0]
    findings = tuple(replace(finding, id=f"F{number}") for number in range(1, 3001))
    text = markdown(OfComparison(comparison=replace(comparisons.parted(), changed=changes, findings=findings), rows=()))
    assert len(text) < 100_000
    assert f"{5000 - MOST:,} more changes" in text
    assert f"{2999 - MOST:,} more findings" in text


@pytest.mark.parametrize("make", [comparisons.agreeing, comparisons.unnamed, comparisons.outside_parameter])
def test_every_kind_of_result_has_a_page(make: object) -> None:
    comparison = make()  # type: ignore[operator]
    text = markdown(OfComparison(comparison=comparison, rows=()))
    assert plain(statement(comparison)[1], longest=2000) in text
