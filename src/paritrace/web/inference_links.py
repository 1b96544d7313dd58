"""The addresses of the pages of inference evidence (P9)."""

from urllib.parse import quote, urlencode

from markupsafe import Markup, escape

from paritrace.evidence.ids import Ref

_NO_SEGMENTS = frozenset({"", ".", ".."})  # a browser takes these out of a path


class InferenceLinks:
    """Links of the pages of one run's artifact, escaped for a page: none of them is shortened as other texts are."""

    def __init__(self, key: str) -> None:
        self.home = f"/r/{key}/inference"

    def at(self, offset: int) -> Markup:
        """The page with another stretch of the requests."""
        return escape(f"{self.home}?offset={offset}#requests" if offset else f"{self.home}#requests")

    def request(self, identity: str) -> Markup:
        """The page of a request, by any id of it."""
        if identity in _NO_SEGMENTS:
            return escape(f"{self.home}/request/?" + urlencode({"id": identity}))
        return escape(f"{self.home}/request/{quote(identity, safe='')}")

    def events(self, **wanted: object) -> Markup:
        """The lines behind a figure; empty values ask for nothing."""
        given = {name: value for name, value in wanted.items() if value not in (None, "", 0)}
        return escape(f"{self.home}/events" + ("?" + urlencode(given) if given else ""))

    def iteration(self, ref: Ref) -> Markup:
        """The lines about an iteration."""
        return self.events(producer=ref.producer_id, iteration=ref.id)
