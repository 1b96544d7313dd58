"""Lines of two versions of a file: equal text corresponds, other text never does (CP-5)."""

from hypothesis import given, settings
from hypothesis import strategies as st

from paritrace.correspondence.lines import related_lines

texts = st.lists(st.sampled_from(["a", "b", "c", "", "  d"]), max_size=9).map("\n".join)


def test_an_inserted_line_moves_the_others() -> None:
    assert related_lines("a\nb\nc", "a\nnew\nb\nc") == {1: 1, 2: 3, 3: 4}


def test_equal_numbers_with_other_text_do_not_correspond() -> None:
    assert related_lines("a\nb\nc", "a\nB\nc") == {1: 1, 3: 3}


def test_two_swapped_lines_correspond_by_their_text() -> None:
    assert related_lines("q = f(x)\nk = g(x)\nend", "k = g(x)\nq = f(x)\nend") == {1: 2, 2: 1, 3: 3}


def test_a_line_that_stands_twice_is_not_guessed() -> None:
    assert related_lines("x\na\nx\nb", "b\nx") in ({4: 1}, {})


@settings(deadline=None)
@given(texts)
def test_a_text_corresponds_to_itself(text: str) -> None:
    count = len(text.splitlines())
    assert related_lines(text, text) == {line: line for line in range(1, count + 1)}


@settings(deadline=None)
@given(texts, texts)
def test_swapping_the_texts_inverts_the_relation(a: str, b: str) -> None:
    assert related_lines(a, b) == {i: j for j, i in related_lines(b, a).items()}


@settings(deadline=None)
@given(texts, texts)
def test_related_lines_have_equal_text_and_one_partner(a: str, b: str) -> None:
    found = related_lines(a, b)
    left, right = a.splitlines(), b.splitlines()
    assert all(left[i - 1] == right[j - 1] for i, j in found.items())
    assert len(set(found.values())) == len(found)
