"""Spelling the call sites of two runs alike: one key for the same line of two versions of a file (CP-5, CP-19)."""

from collections.abc import Callable, Hashable, Mapping
from pathlib import PurePath
from typing import NamedTuple

from paritrace.correspondence.lines import Relation, related_lines
from paritrace.evidence.calls import Site, SourceKind

SourceOf = Callable[[str], str | None]


class Relations(NamedTuple):
    """How the lines of two versions of a file relate, read from either side."""

    forward: Relation
    back: Relation


class Lines:
    """The relation of lines of each pair of file versions, made when first asked for."""

    def __init__(self, baseline: SourceOf, candidate: SourceOf) -> None:
        self._sources = (baseline, candidate)
        self._relations: dict[tuple[str, str], Relations | None] = {}

    def relations(self, baseline: str, candidate: str) -> Relations | None:
        """Line of the baseline's source <-> line of the candidate's; None when a source was not recorded."""
        if (baseline, candidate) not in self._relations:
            self._relations[baseline, candidate] = self._related(baseline, candidate)
        return self._relations[baseline, candidate]

    def text(self, site: Site, *, side: int) -> str:
        """The stripped source line of a site, "" when its source was not recorded."""
        text = self._sources[side](site.digest) if isinstance(site.digest, str) else None
        lines = text.splitlines() if text is not None else []
        return lines[site.line - 1].strip() if 0 < site.line <= len(lines) else ""

    def changed(self, baseline: str, candidate: str) -> tuple[list[tuple[int, str]], list[tuple[int, str]]] | None:
        """The lines (number, stripped text) that only one version has, by side; None when a source is missing."""
        relations = self.relations(baseline, candidate)
        left, right = self._sources[0](baseline), self._sources[1](candidate)
        if relations is None or left is None or right is None:
            return None
        ours = [(n, text.strip()) for n, text in enumerate(left.splitlines(), 1) if n not in relations.forward]
        theirs = [(n, text.strip()) for n, text in enumerate(right.splitlines(), 1) if n not in relations.back]
        return ours, theirs

    def _related(self, baseline: str, candidate: str) -> Relations | None:
        left, right = self._sources[0](baseline), self._sources[1](candidate)
        if left is None or right is None:
            return None
        forward = related_lines(left, right)
        return Relations(forward, {j: i for i, j in forward.items()})


def place_of(site: Site) -> str:
    """A site as FILE:LINE, empty where no line is known."""
    return f"{shown_file(site)}:{site.line}" if site.line > 0 else ""


def shown_file(site: Site) -> str:
    """A site's file as a person knows it: the main script by its name, which `<main>` stands for in keys (CP-19)."""
    return PurePath(site.path).name if site.kind is SourceKind.MAIN and site.path else site.file


class SiteKeys(NamedTuple):
    """The key of every site id of both sides."""

    baseline: dict[int, Hashable]
    candidate: dict[int, Hashable]


def site_keys(baseline: Mapping[int, Site], candidate: Mapping[int, Site], *, lines: Lines) -> SiteKeys:
    """Give every site of both sides a key that is equal exactly where the sites correspond."""
    ours = {_file(site): site.digest for site in baseline.values() if isinstance(site.digest, str)}
    theirs = {_file(site): site.digest for site in candidate.values() if isinstance(site.digest, str)}
    keys = SiteKeys({}, {})
    for site in baseline.values():
        other = theirs.get(_file(site))
        keys.baseline[site.id] = _key(site, other, side=0, lines=lines)
    for site in candidate.values():
        other = ours.get(_file(site))
        keys.candidate[site.id] = _key(site, other, side=1, lines=lines)
    return keys


def _file(site: Site) -> str:
    return f"{site.kind.value}:{site.file}"


def _key(site: Site, other: str | None, *, side: int, lines: Lines) -> tuple[str | int, ...]:
    """A line that is related counts by the baseline's number, with its column; one that is not, for its side only.

    Where two versions cannot be related because a source was not recorded, the function's name stands in.
    """
    if site.digest == other:
        return (_file(site), site.line, site.column)
    if other is None or not isinstance(site.digest, str):
        return (_file(site), site.function)
    pair = (site.digest, other) if side == 0 else (other, site.digest)
    relations = lines.relations(*pair)
    if relations is None:
        return (_file(site), site.function)
    own = site.line if site.line in relations.forward else None
    line = own if side == 0 else relations.back.get(site.line)
    return (_file(site), site.line, site.column, side) if line is None else (_file(site), line, site.column)
