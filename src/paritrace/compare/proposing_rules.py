"""From matched modules to as few maps of names as say the same, each with its evidence (CP-5): pure."""

from collections.abc import Iterator, Mapping

from paritrace.compare.proposals import ProposedMap
from paritrace.compare.proposing import BY_SUM, Matches
from paritrace.compare.proposing_weights import Total, Weights, ancestors
from paritrace.compare.renamings import Of, Renaming, rule_for
from paritrace.evidence.fingerprints import Scheme

BASELINE, CANDIDATE = "baseline", "candidate"


def rules_of(found: Matches, a: Weights, b: Weights) -> tuple[ProposedMap, ...]:
    """The maps, the outermost first. Names are mapped to the candidate's, as they are read without its wrappers."""
    totals = a.totals()
    rules: list[Renaming] = []
    proposed: list[ProposedMap] = []
    for wrapper in _wrappers(b, found.back):
        around = wrapper.rpartition(".")[0]
        _propose(Renaming(wrapper, read(around, rules, CANDIDATE), CANDIDATE), _WRAPPER, rules, proposed)
    wrappers = set(_wrappers(a, found.there))
    for ours in sorted({*found.there, *wrappers} - {""}, key=lambda module: (module.count("."), module)):
        if ours in wrappers:
            wanted, evidence = read(ours.rpartition(".")[0], rules, BASELINE), _WRAPPER
        else:
            wanted = read(found.there[ours], rules, CANDIDATE)
            evidence = _sum(totals[ours], found.how[ours])
        _propose(Renaming(ours, wanted, BASELINE), evidence, rules, proposed)
    for ours, theirs in _leaves(found, a, b):
        weight = a.weights[ours].total
        evidence = _sum(weight, BY_SUM) if weight is not None else ""
        _propose(Renaming(ours, read(theirs, rules, CANDIDATE), BASELINE), evidence, rules, proposed)
    return tuple(proposed)


_WRAPPER = "a module of one run alone, around modules that are matched: what is in it is read without it"


def read(name: str, rules: list[Renaming], side: str) -> str:
    """A name as the rules so far read it."""
    found = rule_for(name, rules, of=Of.MODULE, side=side, rank=-1)
    return name if found is None else found[1]


def _propose(rule: Renaming, evidence: str, rules: list[Renaming], proposed: list[ProposedMap]) -> None:
    """Add a rule, unless the rules so far read its name like that anyway."""
    if read(rule.old, rules, rule.side) != rule.new:
        rules.append(rule)
        proposed.append(ProposedMap(rule=str(rule), evidence=evidence))


def _sum(total: Total | None, how: str) -> str:
    assert total is not None  # nothing is matched without one
    alone = "one place of each run" if how == BY_SUM else "under the same name"
    return f"{Scheme.ELEMENTS_U64.value} {total[0]:016x} over {total[1]:,} elements ({', '.join(total[2])}), {alone}"


def _wrappers(side: Weights, matched: Mapping[str, str]) -> list[str]:
    """Modules that were called and match nothing, but hold modules that are matched; the outermost first.

    One that holds a module of the same name on both sides is none: its name says where it belongs.
    """
    around = {module for each in matched for module in ancestors(each)}
    named = {module for ours, theirs in matched.items() if ours == theirs for module in ancestors(ours)}
    return sorted((around & side.called) - matched.keys() - named, key=lambda module: (module.count("."), module))


def _leaves(found: Matches, a: Weights, b: Weights) -> Iterator[tuple[str, str]]:
    """Parameters of matched modules that are called otherwise and have a sum that no other of the module has."""
    ours_of, theirs_of = _owned(a), _owned(b)
    for ours, theirs in found.there.items():
        mine, others = ours_of.get(ours, {}), theirs_of.get(theirs, {})
        for total, names in mine.items():
            there = others.get(total, [])
            same_leaf = {name.rpartition(".")[2] for name in names} & {name.rpartition(".")[2] for name in there}
            if len(names) == len(there) == 1 and not same_leaf:
                yield names[0], there[0]


def _owned(side: Weights) -> dict[str, dict[Total, list[str]]]:
    found: dict[str, dict[Total, list[str]]] = {}
    for weight in side.weights.values():
        if weight.total is not None:
            module = weight.name.rpartition(".")[0]
            found.setdefault(module, {}).setdefault(weight.total, []).append(weight.name)
    return found
