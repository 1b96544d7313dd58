"""The rule of a bearer token (SU-11, SE-17)."""

from hypothesis import given
from hypothesis import strategies as st

from paritrace.loopback.tokens import BEARER, bearer, same


@given(st.text(), st.text())
def test_se17_two_tokens_are_the_same_where_all_of_them_is(given_text: str, token: str) -> None:
    try:
        token.encode()
    except UnicodeEncodeError:
        return
    assert same(given_text, token) == (given_text == token)


def test_se17_a_bearer_token_stands_in_one_header_behind_its_scheme() -> None:
    assert bearer({"authorization": f"{BEARER}abc"}) == "abc"
    assert bearer({"authorization": "Basic abc"}) == ""
    assert bearer({"authorization": "abc"}) == ""
    assert bearer({}) == ""
