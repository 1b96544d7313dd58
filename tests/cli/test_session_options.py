"""What `NAME=VALUE` means on the command line of a session."""

import pytest

from paritrace.cli.session_options import values_of
from paritrace.errors import RequestError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.001", 0.001),
        ("12", 12),
        ("true", True),
        ("[1, 2]", [1, 2]),
        ('"12"', "12"),
        ("cosine", "cosine"),
        ("", ""),
        ("a=b", "a=b"),
        ("NaN", "NaN"),  # would go over the line as null: as a text it is refused by whoever wants a number
        ("-Infinity", "-Infinity"),
        ("1e999", "1e999"),
    ],
)
def test_a_value_is_json_or_else_a_text(text: str, value: object) -> None:
    assert values_of((f"lr={text}",)) == {"lr": value}


@pytest.mark.parametrize("text", ["lr", "=1", ""])
def test_what_has_no_name_or_no_value_is_refused(text: str) -> None:
    with pytest.raises(RequestError, match="is not NAME=VALUE"):
        values_of((text,))
