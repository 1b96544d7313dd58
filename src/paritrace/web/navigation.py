"""The bar of each page: where it leads."""

from typing import Annotated

from fastapi import Path

from paritrace.errors import RequestError
from paritrace.reports.html.templates import NavLink

Key = Annotated[str, Path(max_length=64)]
HOME = NavLink("All", "/")
NO_SUCH_PAGE = RequestError("there is no such page", code="no_such_page", fix="begin at the first page, /")


def of_run(key: str, /) -> tuple[NavLink, ...]:
    """Returns the bar of the pages below a run."""
    return (HOME, NavLink("Run", f"/r/{key}/"))


def of_comparison(key: str, /, *, current: str) -> tuple[NavLink, ...]:
    """Returns the bar of a comparison's pages; `current` is the one that is shown, "" for none of them."""
    home = f"/c/{key}/"
    places = (
        ("Comparison", home),
        ("Calls", f"{home}calls"),
        ("Undetermined", f"{home}undetermined"),
        ("Timeline", f"{home}timeline"),
    )
    return (HOME, *(NavLink(text, href, text == current) for text, href in places))
