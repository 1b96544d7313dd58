"""Spelling the call sites of two runs alike: one key for the same line of two versions of a file (CP-5, CP-19)."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import NamedTuple

from paritrace.correspondence.lines import Relation, related_lines
from paritrace.evidence.calls import Site, SourceKind

SourceOf = Callable[[str], str | None]
ReadFile = Callable[[str], str]


def as_recorded(file: str) -> str:
    """A file without a declared map."""
    return file


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


def site_keys(
    baseline: Mapping[int, Site],
    candidate: Mapping[int, Site],
    *,
    lines: Lines,
    reading: tuple[ReadFile, ReadFile] = (as_recorded, as_recorded),
) -> SiteKeys:
    """Give every site of both sides a key that is equal exactly where the sites correspond.

    `reading`: how each side's files are read by declared maps (CP-5).
    """
    files = _files(baseline.values(), candidate.values(), reading)
    ours = {files[0][site.id]: site.digest for site in baseline.values() if isinstance(site.digest, str)}
    theirs = {files[1][site.id]: site.digest for site in candidate.values() if isinstance(site.digest, str)}
    keys = SiteKeys({}, {})
    for site in baseline.values():
        file = files[0][site.id]
        keys.baseline[site.id] = _key(site, file, theirs.get(file), side=0, lines=lines)
    for site in candidate.values():
        file = files[1][site.id]
        keys.candidate[site.id] = _key(site, file, ours.get(file), side=1, lines=lines)
    return keys


def _files(
    baseline: Iterable[Site], candidate: Iterable[Site], reading: tuple[ReadFile, ReadFile]
) -> tuple[dict[int, str], dict[int, str]]:
    """The file of every site as it is looked for on the other side; a mapped one is of the other's kind."""
    sides = (list(baseline), list(candidate))
    kinds = [_kinds(sides[side], reading[side]) for side in (0, 1)]
    return (_looked_for(sides[0], reading[0], kinds[1]), _looked_for(sides[1], reading[1], kinds[0]))


def _kinds(sites: Sequence[Site], read: ReadFile) -> dict[str, set[SourceKind]]:
    found: dict[str, set[SourceKind]] = {}
    for site in sites:
        found.setdefault(read(site.file), set()).add(site.kind)
    return found


def _looked_for(sites: Sequence[Site], read: ReadFile, there: Mapping[str, set[SourceKind]]) -> dict[int, str]:
    found: dict[int, str] = {}
    for site in sites:
        name = read(site.file)
        kinds = there.get(name, set())
        kind = next(iter(kinds)) if name != site.file and len(kinds) == 1 else site.kind
        found[site.id] = f"{kind.value}:{name}"
    return found


def _key(site: Site, file: str, other: str | None, *, side: int, lines: Lines) -> tuple[str | int, ...]:
    """A line that is related counts by the baseline's number, with its column; one that is not, for its side only.

    Where two versions cannot be related because a source was not recorded, the function's name stands in.
    """
    if site.digest == other:
        return (file, site.line, site.column)
    if other is None or not isinstance(site.digest, str):
        return (file, site.function)
    pair = (site.digest, other) if side == 0 else (other, site.digest)
    relations = lines.relations(*pair)
    if relations is None:
        return (file, site.function)
    own = site.line if site.line in relations.forward else None
    line = own if side == 0 else relations.back.get(site.line)
    return (file, site.line, site.column, side) if line is None else (file, line, site.column)
