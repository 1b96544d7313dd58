"""Answers are escaped, counted and bounded whatever a record holds (AU-12, AU-13)."""

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from paritrace.mcp.telling import ANSWER_CHARACTERS, TEXT_CHARACTERS, Listing, answer_of, listing, size_of, told
from tests.mcp.asking import texts


class Inner(Struct, frozen=True):
    name: str
    parts: Listing[str]


class Outer(Struct, frozen=True):
    title: str
    numbers: dict[str, float]
    inner: Listing[Inner]
    others: Listing[str]


def outer(names: list[str], others: list[str]) -> Outer:
    inner = [Inner(name, listing([name] * 3)) for name in names]
    return Outer(names[0] if names else "", {"a": 1.0}, listing(inner), listing(others, total=len(others) + 7))


def test_au12_the_longest_list_is_shortened_and_stays_counted() -> None:
    found = answer_of(outer(["x" * 200] * 500, ["short"] * 20))
    assert size_of(found) <= ANSWER_CHARACTERS
    assert found["inner"]["total"] == 500
    assert 0 < found["inner"]["shown"] == len(found["inner"]["items"]) < 500
    assert found["others"] == {"total": 27, "shown": 20, "items": ["short"] * 20}


def test_au12_a_small_answer_is_whole() -> None:
    found = answer_of(outer(["a", "b"], ["c"]))
    assert found["inner"]["items"][1] == {"name": "b", "parts": {"total": 3, "shown": 3, "items": ["b", "b", "b"]}}


def test_au13_what_is_not_printable_is_an_escape() -> None:
    assert told("a\x1b[31m\u202eb\nc\U000e0041\u200b\ud800") == "a\\x1b[31m\\u202eb\\nc\\U000e0041\\u200b\\ud800"
    assert told("<b>äß</b>") == "<b>äß</b>"


def test_au13_a_long_text_keeps_both_ends() -> None:
    shown = told("begin" + "x" * 10**6 + "end")
    assert shown.startswith("begin")
    assert shown.endswith("end")
    assert len(shown) == TEXT_CHARACTERS[0]


def test_au12_what_is_no_number_is_null() -> None:
    found = answer_of(Outer("", {"a": float("nan"), "b": float("-inf"), "c": 0.5}, listing(()), listing(())))
    assert found["numbers"] == {"a": None, "b": None, "c": 0.5}


anything = st.text(st.characters(codec=None), max_size=400)


@settings(max_examples=40, deadline=None)
@given(st.lists(anything, max_size=60), st.lists(anything, max_size=60))
def test_au13_whatever_the_texts_are(names: list[str], others: list[str]) -> None:
    found = answer_of(outer(names, others))
    assert size_of(found) <= ANSWER_CHARACTERS
    assert (found["inner"]["total"], found["others"]["total"]) == (len(names), len(others) + 7)
    assert all(text.isprintable() and len(text) <= TEXT_CHARACTERS[0] for text in texts(found))
