"""What each declared map was found to name, so that one that matches nothing is said and never silent (CP-5)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from paritrace.compare.load import Recorded
from paritrace.compare.renamings import Of, Renaming, rule_for
from paritrace.compare.result import DeclaredMap
from paritrace.compare.settings import Settings
from paritrace.compare.state_groups import TENSORS

_SIDES = ("baseline", "candidate")
Uses = Mapping[str, "MapUse"]
"""By the rule, as it is written."""


class MapUse(NamedTuple):
    """The recorded names that one rule reads otherwise, and those of them that the other side has."""

    names: frozenset[str] = frozenset()
    met: frozenset[str] = frozenset()


def map_uses(baseline: Sequence[Recorded], candidate: Sequence[Recorded], *, settings: Settings) -> dict[str, MapUse]:
    """What the rules name among ranks of both runs; a rule for a rank that is not among them is left out."""
    if not settings.renamings:
        return {}
    sides = (baseline, candidate)
    read = {(side, of): _read(sides[side], _SIDES[side], settings, of=of) for side in (0, 1) for of in Of}
    found: dict[str, MapUse] = {}
    for rule in settings.renamings:
        side = _SIDES.index(rule.side)
        ranks = [recorded.session.rank for recorded in sides[side]]
        if rule.rank < 0 or rule.rank in ranks:
            there = {name for names in read[1 - side, rule.of].values() for name in names}
            found[str(rule)] = _use(rule, read[side, rule.of], there)
    return found


_Names = dict[Renaming | None, dict[str, str]]
"""Rule -> name as read -> name as recorded; None: names that no rule reads otherwise."""


def _read(side: Sequence[Recorded], name: str, settings: Settings, *, of: Of) -> _Names:
    found: _Names = {}
    for recorded in side:
        reading = settings.seen_from(name, recorded.session.rank)
        for each in _names(recorded, of):
            stripped = reading.without_prefixes(each) if of is Of.MODULE else each
            rule = rule_for(stripped, settings.renamings, of=of, side=name, rank=recorded.session.rank)
            found.setdefault(None if rule is None else rule[0], {})[stripped if rule is None else rule[1]] = each
    return found


def _names(recorded: Recorded, of: Of) -> Iterable[str]:
    match of:
        case Of.FILE:
            return {site.file for site in recorded.sites.values()}
        case Of.FUNCTION:
            return {function.name for function in recorded.functions.values()}
        case Of.MODULE:
            modules = {scope.module for scope in recorded.scopes.values()}
            owned = (names.names for names in recorded.state_names.values() if names.group in TENSORS)
            return modules | {name for names in owned for name in names}


def _use(rule: Renaming, names: _Names, there: set[str]) -> MapUse:
    read = names.get(rule, {})
    return MapUse(frozenset(read.values()), frozenset(read[name] for name in read.keys() & there))


def declared_maps(settings: Settings, uses: Sequence[Uses]) -> tuple[DeclaredMap, ...]:
    """The declared maps of a comparison with what they name on all ranks that were compared."""
    return tuple(
        _declared(str(rule), rule.of, [use[str(rule)] for use in uses if str(rule) in use])
        for rule in settings.renamings
    )


def _declared(rule: str, of: Of, uses: Sequence[MapUse]) -> DeclaredMap:
    names = frozenset[str]().union(*(use.names for use in uses))
    met = frozenset[str]().union(*(use.met for use in uses))
    return DeclaredMap(
        rule=rule,
        of=of.value,
        names=len(names) if uses else None,
        met=len(met) if uses else None,
        without_counterpart=tuple(sorted(names - met)[:TOLD]),
    )


TOLD = 5
