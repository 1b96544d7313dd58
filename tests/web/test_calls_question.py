"""Questions to the table: what is understood, what is refused, and that no text of a browser becomes SQL (SU-10)."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paritrace.errors import RequestError
from paritrace.web.calls_question import LONGEST, NAMES, Column, Question, asked, condition_of, order_of


def test_su10_a_question_is_read_from_an_address() -> None:
    found = asked({"text": " Soft ", "status": "different", "rank": "1", "sort": "step", "descending": "1", "foo": "x"})
    assert found == Question("Soft", equal=(("status", "different"), ("rank", 1)), sort=Column.STEP, descending=True)
    assert order_of(found) == "step DESC NULLS LAST, n"
    condition = condition_of(found)
    assert condition.values == ("soft", "soft", "soft", "different", 1)
    assert condition.sql.count("?") == 5


def test_su10_empty_values_ask_for_everything() -> None:
    assert asked(dict.fromkeys(NAMES, "")).is_all
    assert condition_of(Question()).sql == "TRUE"
    assert order_of(asked({"sort": "function"})) == "place ASC NULLS LAST, n"


@pytest.mark.parametrize(
    "values",
    [
        {"status": "odd"},
        {"rank": "-1"},
        {"step": "1.5"},
        {"step": "٣"},
        {"step": "9" * 30},
        {"sort": "slots"},
        {"sort": "step; drop table x"},
        {"text": "x" * (LONGEST + 1)},
    ],
)
def test_su10_what_no_row_can_have_is_refused(values: dict[str, str]) -> None:
    with pytest.raises(RequestError) as refused:
        asked(values)
    assert refused.value.code == "bad_filter"


@given(st.dictionaries(st.sampled_from(NAMES), st.text(max_size=40)))
def test_su11_no_text_of_a_browser_becomes_sql(values: dict[str, str]) -> None:
    try:
        question = asked(values)
    except RequestError:
        return
    condition = condition_of(question)
    assert condition.sql.count("?") == len(condition.values)
    assert re.fullmatch(r"[a-z_A-Z\"(), ?=]+", condition.sql)
    assert re.fullmatch(r"[a-zA-Z_, ]+", order_of(question))
