"""Renders pages: one set of templates for the report that is a file and for the pages of a server (SU-7, SU-10).

Whatever is written into a page is made harmless on its way: control characters and marks that turn text around become
escapes, an endless text loses its middle, and markup is escaped (SU-12).
"""

import re
from functools import lru_cache
from importlib.resources import files as package_files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from msgspec import Struct

from paritrace.reports.harmless import harmless, shorten_text
from paritrace.reports.html.known import duration, known
from paritrace.reports.html.links import fragment

_FINDING = re.compile(r"F[0-9]{1,6}")
LONGEST = 2000  # characters of one text on a page; no name, command or line that a person reads has more


class NavLink(Struct, frozen=True):
    text: str
    href: str
    current: bool = False


class Chrome(Struct, frozen=True):
    """What stands around a page. Style and script are either inside it, or addresses of them.

    `policy`: the content-security policy that the page itself states, "" where the server states one.
    """

    title: str
    style: str = ""
    script: str = ""
    style_href: str = ""
    script_hrefs: tuple[str, ...] = ()
    policy: str = ""
    nav: tuple[NavLink, ...] = ()
    made_by: str = ""


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Returns the environment of all templates: an undefined name is an error, every text is escaped."""
    made = Environment(
        loader=PackageLoader("paritrace.reports.html", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=shown,
        auto_reload=False,
    )
    made.filters["fragment"] = fragment
    made.filters["finding_id"] = finding_id
    made.filters["thousands"] = lambda number: f"{number:,}"
    made.filters["percent"] = lambda share: f"{share:.1%}"
    made.filters["duration"] = duration
    made.filters["known"] = known
    return made


def finding_id(anchor: str, /) -> str:
    """Returns the id of the leading statement: that of its finding, so that `report.html#F1` leads there."""
    return anchor if _FINDING.fullmatch(anchor) else "leading"


def shown(value: object, /) -> object:
    """Returns what a template writes for a value: a text is made harmless, markup of ours stays."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return shorten_text(harmless(shorten_text(value, most=LONGEST)), most=LONGEST)
    return value


def render(name: str, /, **values: object) -> str:
    """Returns a page or a part of one."""
    return environment().get_template(name).render(**values)


@lru_cache(maxsize=8)
def asset(name: str, /) -> str:
    """Returns the text of an asset: `style.css`, `page.js` or `calls.js`."""
    return package_files("paritrace.reports.html").joinpath("assets", name).read_text(encoding="utf-8")
