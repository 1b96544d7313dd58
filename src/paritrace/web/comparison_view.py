"""The page of a comparison with the sources that its runs keep and links to everything behind it (CP-29, P9)."""

from collections.abc import Iterator

from msgspec import Struct

from paritrace.compare.result import Comparison, Difference
from paritrace.compare.rows import Side
from paritrace.reports.html.comparison_page import Known, comparison_page
from paritrace.reports.html.pages import ComparisonPage
from paritrace.reports.html.places import parted
from paritrace.reports.shelf import Result
from paritrace.web import contents
from paritrace.web.addresses import ServerLinks
from paritrace.web.library import Library
from paritrace.web.source_view import source_text

MOST_FILES = 12  # texts that are read for one page


class ComparisonView(Struct, frozen=True):
    """`no_calls`: why there is no table of calls; "" where there is one."""

    page: ComparisonPage
    links: ServerLinks
    no_calls: str


def comparison_view(library: Library, key: str, /) -> ComparisonView:
    """Returns the first screen as a page."""
    result = library.result(key)
    known = Known(directory=str(result.path) if result.kept else "", texts=_texts(result))
    return ComparisonView(
        page=comparison_page(result.comparison, known),
        links=contents.links_of(library, key, result),
        no_calls=library.has_calls(result),
    )


def _texts(result: Result) -> dict[tuple[str, str], str]:
    wanted = list(dict.fromkeys(_files(result.comparison)))[:MOST_FILES]
    found = {place: source_text(result, Side(place[0]), place[1]) for place in wanted}
    return {place: one.text for place, one in found.items() if not one.why}


def _files(comparison: Comparison) -> Iterator[tuple[str, str]]:
    for place in _places(comparison):
        for side, site in (("baseline", place.baseline_site), ("candidate", place.candidate_site)):
            if site:
                yield side, parted(site)[0]


def _places(comparison: Comparison) -> Iterator[Difference]:
    yield from (finding.place for finding in comparison.findings)
    if comparison.first_difference is not None:
        yield comparison.first_difference
