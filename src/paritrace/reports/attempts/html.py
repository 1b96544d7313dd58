"""Parts of a report of attempts as one HTML file that needs nothing beside it (AT-17, SU-12)."""

from collections.abc import Iterable

from paritrace import __version__
from paritrace.reports.attempts.sections import Part
from paritrace.reports.html.policy import policy_of
from paritrace.reports.html.templates import Chrome, asset, render


def html_of(parts: Iterable[Part]) -> str:
    """Returns the page; every text in it is escaped and made harmless by the templates."""
    listed = tuple(parts)
    style, script = asset("style.css"), asset("page.js")
    chrome = Chrome(
        title=f"{listed[0].title} - paritrace",
        style=style,
        script=script,
        policy=policy_of(style=style, script=script),
        made_by=f"Made by paritrace {__version__} from recorded evidence. This file asks for nothing.",
    )
    return render("attempts.html", chrome=chrome, parts=listed)
