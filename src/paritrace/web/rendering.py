"""Renders the pages of the server: templates of its own upon those of the report (SU-10)."""

from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files as package_files

from jinja2 import ChoiceLoader, Environment, PackageLoader

from paritrace import __version__
from paritrace.reports.html.templates import Chrome, NavLink, asset, environment

SCRIPTS = ("/static/page.js",)
STYLE = "/static/pages.css"
MEDIA_TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}


@lru_cache(maxsize=1)
def _environment() -> Environment:
    reports = environment()
    loader = ChoiceLoader(
        [PackageLoader("paritrace.web", "templates"), reports.loader or PackageLoader("paritrace.reports.html")]
    )
    made: Environment = reports.overlay(loader=loader)
    return made


def page(
    name: str,
    shown: Mapping[str, object],
    /,
    *,
    title: str,
    nav: tuple[NavLink, ...] = (),
    scripts: tuple[str, ...] = (),
) -> str:
    """Returns a page as HTML."""
    chrome = Chrome(
        title=f"{title} - paritrace",
        style_href=STYLE,
        script_hrefs=(*SCRIPTS, *scripts),
        nav=nav,
        made_by=f"paritrace {__version__}, shown from this machine; nothing is sent anywhere",
    )
    return _environment().get_template(name).render(chrome=chrome, **shown)


def static(name: str, /) -> bytes | None:
    """Returns a file of the pages by its name, None for any other name."""
    match name:
        case "pages.css":
            return asset("style.css").encode() + _own(name)
        case "page.js":
            return asset(name).encode()
        case "calls_table.js" | "session.js" | "session_control.js" | "icon.svg":
            return _own(name)
        case _:
            return None


def _own(name: str) -> bytes:
    return package_files("paritrace.web").joinpath("static", name).read_bytes()
