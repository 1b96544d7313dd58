"""Declared maps of modules, files and functions as a basis of their own (CP-5); mirror symmetry with them (CP-4)."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paritrace.compare.renamings import Of, Renaming, parse_map, parse_maps, without_conflicts
from paritrace.compare.result import Agreement, Basis, Status
from paritrace.compare.rows import CallRow, Compared, Side
from paritrace.compare.settings import Settings
from paritrace.errors import RequestError
from tests.compare.named_trainings import MAPS, PORTED, Names, maps, mirrored, named
from tests.compare.runs import compared


def joined(place: Path, rules: tuple[Renaming, ...], *, other: Names = PORTED) -> Compared:
    return compared(place, named(Names()), named(other), settings=Settings(renamings=rules))


def test_cp5_without_a_map_only_what_needs_no_name_pairs(tmp_path: Path) -> None:
    found = joined(tmp_path, ())
    assert found.result.counts.paired == 0
    assert found.result.maps == ()


def test_cp5_maps_pair_modules_functions_files_and_parameters(tmp_path: Path) -> None:
    found = joined(tmp_path, maps(*MAPS))
    counts = found.result.counts
    assert (counts.undetermined_baseline, counts.undetermined_candidate, counts.different) == (0, 0, 0)
    assert found.result.pairs_by_basis == {Basis.DECLARED: counts.paired}
    assert found.result.ladder["weights"] == "="
    assert all(declared.met for declared in found.result.maps)
    assert found.result.settings["map"].split() == [f"baseline:{text}" for text in MAPS]


def test_cp5_a_name_that_is_the_same_on_both_sides_keeps_its_own_basis(tmp_path: Path) -> None:
    other = Names(first="model.entry")
    found = joined(tmp_path, maps("model.first=model.entry"), other=other)
    rows = [row for row in found.rows if row.side is Side.BASELINE]
    declared = {row.module for row in rows if row.basis is Basis.DECLARED and row.level == "module"}
    assert declared == {"model.entry"}
    assert {row.basis for row in rows if row.level == "module" and row.module == "model.second"} == {Basis.SCOPE}


def test_cp5_a_map_of_files_relates_lines_by_the_exact_diff(tmp_path: Path) -> None:
    other = Names(file="b/net.py")
    mapped = joined(tmp_path / "with", maps("file:a=b", "file:a/model.py=b/net.py"), other=other)
    assert mapped.result.counts.undetermined_baseline == 0
    alone = joined(tmp_path / "without", maps("file:a=b"), other=other)
    assert alone.result.counts.undetermined_baseline > 0
    assert alone.result.maps[0].met == 0


def test_cp5_a_map_that_matches_nothing_is_said(tmp_path: Path) -> None:
    found = joined(tmp_path, maps("modle=net", "function:aten.mul.Tensor=no.such", "candidate@3:x=y"))
    assert [(d.rule, d.names, d.met) for d in found.result.maps] == [
        ("baseline:modle=net", 0, 0),
        ("baseline:function:aten.mul.Tensor=no.such", 1, 0),
        ("candidate@3:x=y", None, None),
    ]


@pytest.mark.parametrize(
    ("rules", "conflict"),
    [
        (("a=b", "a=c"), "one name, two readings"),
        (("a=b", "baseline@0:a=c"), "one name, two readings"),
        (("a=c", "b=c"), "two names, one reading"),
        (("a=b", "candidate:b=a"), "what one leads to, the other leads away from"),
        (("function:f=g", "function:f=h"), "one name, two readings"),
        (("a=b", "candidate:c=b"), None),
        (("model.a=x", "model=y"), None),
        (("candidate@0:a=b", "candidate@1:a=c"), None),
        (("a=", "b="), None),
        (("a=b", "file:a=c"), None),
        (("a=b", "a=b"), None),
    ],
)
def test_cp5_rules_that_conflict_are_refused(rules: tuple[str, ...], conflict: str | None) -> None:
    if conflict is None:
        assert without_conflicts(maps(*rules)) == tuple(dict.fromkeys(maps(*rules)))
        return
    with pytest.raises(RequestError) as caught:
        without_conflicts(maps(*rules))
    assert caught.value.code == "conflicting_maps"
    assert [conflict in detail for detail in caught.value.details] == [True]


@pytest.mark.parametrize("text", ["a", "=", "function:=g", "function:f=", "line:a=b", "candidate@x:a=b", "a=b=c"])
def test_cp5_what_is_no_map_is_refused(text: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse_map(text)
    assert caught.value.code == "bad_map"


def test_cp5_all_that_are_no_maps_are_listed_at_once() -> None:
    with pytest.raises(RequestError) as caught:
        parse_maps(["a=b", "a", "function:=g", "candidate@x:a=b"])
    assert caught.value.message == "3 of --map are not OLD=NEW"
    assert caught.value.details == ("a", "function:=g", "candidate@x:a=b")


def test_cp5_the_rule_that_names_most_of_a_path_counts_in_any_order() -> None:
    for rules in (("m=n", "m.a=o"), ("m.a=o", "m=n")):
        read = Settings(renamings=maps(*rules)).seen_from("baseline", 0)
        assert [read.spelled(name) for name in ("m.b", "m.a.w", "m.ab", "mm")] == ["n.b", "o.w", "n.ab", "mm"]
        assert Settings(renamings=maps(*rules)).seen_from("candidate", 0).spelled("m.b") == "m.b"
    assert parse_map("file:src/=lib/").of is Of.FILE
    kept = Settings(renamings=maps("m=n", "m.a=m.a")).seen_from("baseline", 0)
    assert [kept.spelled(name) for name in ("m.b", "m.a.w")] == ["n.b", "m.a.w"]
    assert not kept.is_declared("m.a", of=Of.MODULE)


# --- CP-4 ---------------------------------------------------------------------------------------------------------

NAMES = st.builds(
    Names,
    model=st.sampled_from(["model", "net"]),
    first=st.sampled_from(["model.first", "net.in"]),
    second=st.sampled_from(["model.second", "net.out"]),
    weight=st.sampled_from(["weight", "kernel"]),
    cls=st.sampled_from(["Linear", "Dense"]),
    function=st.sampled_from(["aten.mul.Tensor", "jit.mul"]),
    file=st.sampled_from(["a/model.py", "b/net.py"]),
)
RULES = st.lists(st.sampled_from(MAPS), unique=True).map(lambda texts: maps(*texts))
PLACES = st.integers(-1, 1)


def pairs_of(found: Compared) -> set[tuple[int, int, Basis | None, Status, bool]]:
    return {
        (row.record_id, row.partner, row.basis, row.status, row.reordered)
        for row in found.rows
        if row.side is Side.BASELINE and row.partner >= 0
    }


def unpaired(found: Compared, side: Side) -> dict[int, object]:
    return {row.record_id: row.reason for row in found.rows if row.side is side and row.partner < 0}


@settings(max_examples=10, deadline=None)
@given(NAMES, NAMES, RULES, PLACES, PLACES)
def test_cp4_swapping_the_sides_mirrors_the_result_with_maps(
    ours: Names, theirs: Names, rules: tuple[Renaming, ...], extra: int, other: int
) -> None:
    with TemporaryDirectory() as folder:
        a, b = named(ours, extra=extra), named(theirs, extra=other, scale=1.5)
        there = compared(Path(folder) / "there", a, b, settings=Settings(renamings=rules))
        back = compared(Path(folder) / "back", b, a, settings=Settings(renamings=mirrored(rules)))
        assert pairs_of(there) == {(j, i, *rest) for i, j, *rest in pairs_of(back)}
        assert unpaired(there, Side.BASELINE) == unpaired(back, Side.CANDIDATE)
        assert unpaired(there, Side.CANDIDATE) == unpaired(back, Side.BASELINE)
        assert there.result.ladder == back.result.ladder
        assert [(d.names, d.met) for d in there.result.maps] == [(d.names, d.met) for d in back.result.maps]


@settings(max_examples=10, deadline=None)
@given(RULES, st.integers(0, 1))
def test_cp4_an_added_call_changes_pairs_of_its_own_module_only(rules: tuple[Renaming, ...], extra: int) -> None:
    with TemporaryDirectory() as folder:
        place = Path(folder)
        without = compared(place / "x", named(Names()), named(PORTED), settings=Settings(renamings=rules))
        added = compared(place / "y", named(Names()), named(PORTED, extra=extra), settings=Settings(renamings=rules))
        elsewhere = ("model.first", "model.second")[1 - extra], ("net.in", "net.out")[1 - extra]
        assert _partners(without, elsewhere) == _partners(added, elsewhere)


def _partners(found: Compared, modules: tuple[str, ...]) -> list[tuple[object, ...]]:
    """Calls of these modules: what each is, whether it is paired and with what, in words that hold in both runs."""
    rows = {(row.side, row.record_id): row for row in found.rows}
    return [
        (_what(row), row.reason, None if row.partner < 0 else _what(rows[Side.CANDIDATE, row.partner]))
        for row in rows.values()
        if row.side is Side.BASELINE and row.module in modules
    ]


def _what(row: CallRow) -> tuple[object, ...]:
    return (row.module, row.function, row.line, row.phase, row.level)


@settings(max_examples=10, deadline=None)
@given(NAMES, NAMES, RULES, st.floats(0.5, 2.0), PLACES)
def test_cp4_outputs_never_influence_pairing(
    ours: Names, theirs: Names, rules: tuple[Renaming, ...], scale: float, extra: int
) -> None:
    """Only the last product is scaled: what it gives is no input of any call in its stream."""
    with TemporaryDirectory() as folder:
        place = Path(folder)
        same, scaled = named(theirs, extra=extra), named(theirs, extra=extra, scale=scale)
        one = compared(place / "x", named(ours), same, settings=Settings(renamings=rules))
        other = compared(place / "y", named(ours), scaled, settings=Settings(renamings=rules))
        assert {pair[:3] for pair in pairs_of(one)} == {pair[:3] for pair in pairs_of(other)}
        assert unpaired(one, Side.BASELINE) == unpaired(other, Side.BASELINE)
        agreements = {slot.agreement for row in other.rows for slot in row.slots if row.partner >= 0}
        assert agreements <= set(Agreement)
