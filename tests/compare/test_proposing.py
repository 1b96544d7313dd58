"""Maps of names proposed from sums of parameters: what is proposed, what is only listed, what nobody applies (CP-5)."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from paritrace.compare.name_map_file import accepted_maps
from paritrace.compare.proposals import NameMap, Related, ReviewState
from paritrace.compare.proposing import matched
from paritrace.compare.proposing_maps import propose
from paritrace.compare.proposing_rules import rules_of
from paritrace.compare.proposing_weights import Total, Weight, Weights, added
from paritrace.compare.renamings import Of, parse_map, rule_for
from paritrace.compare.settings import Settings
from paritrace.errors import EvidenceError, RequestError
from paritrace.runs.reading import open_run
from paritrace.testing.tables import Array, Local, RunTable
from tests.compare.runs import numbers


def run(place: Path, parameters: Mapping[str, Array], *, called: Sequence[str] = (), ranks: int = 1) -> Path:
    """A run that began its first step with these parameters; on several ranks each holds a part along dim 0."""
    for rank in range(ranks):
        table = RunTable()
        held = {
            name: Local(np.ascontiguousarray(np.array_split(array, ranks)[rank]) if ranks > 1 else array)
            for name, array in parameters.items()
        }
        table.state("parameter", held)
        for module in called:
            table.enter(module).leave(out=numbers(1))
        table.end_step()
        table.write(place, rank=rank, world_size=ranks)
    return place


def proposed(
    place: Path, ours: Mapping[str, Array], theirs: Mapping[str, Array], *, called: Sequence[str] = ()
) -> NameMap:
    """The proposal for two runs; `called`: modules that the baseline entered."""
    a, b = run(place / "A", ours, called=called), run(place / "B", theirs)
    with open_run(a) as baseline, open_run(b) as candidate:
        return propose(baseline, candidate, settings=Settings())


Q, K, V, OUT, UP = (numbers(seed, 8, 8) for seed in range(5))
ONES = np.ones(8, np.float32)
HF = {
    "model.embed.weight": UP,
    "model.layers.0.attn.q.weight": Q,
    "model.layers.0.attn.k.weight": K,
    "model.layers.0.attn.v.weight": V,
    "model.layers.0.attn.o.weight": OUT,
    "model.layers.0.norm_in.weight": ONES,
    "model.layers.0.norm_out.weight": ONES,
}
MEGATRON = {
    "embedding.word.weight": UP,
    "decoder.0.attention.qkv.weight": np.concatenate([Q, K, V]),
    "decoder.0.attention.dense.weight": OUT,
    "decoder.0.ln_a.weight": ONES,
    "decoder.0.ln_b.weight": ONES,
}


def test_cp5_modules_are_matched_by_the_sums_of_all_that_is_in_them(tmp_path: Path) -> None:
    found = proposed(tmp_path, HF, MEGATRON)
    assert [one.rule for one in found.maps] == [
        "baseline:model.embed=embedding.word",
        "baseline:model.layers=decoder",
        "baseline:model.layers.0.attn=decoder.0.attention",
        "baseline:model.layers.0.attn.o=decoder.0.attention.dense",
    ]
    assert all("elements-u64" in one.evidence and one.review is ReviewState.PROPOSED for one in found.maps)
    (fused,) = found.related
    assert (fused.relation, fused.candidate) == (Related.FUSED, ("decoder.0.attention.qkv.weight",))
    assert {name.split(".")[-2] for name in fused.baseline} == {"q", "k", "v"}
    (doubt,) = found.ambiguous
    assert doubt.baseline == ("model.layers.0.norm_in.weight", "model.layers.0.norm_out.weight")
    assert found.only_baseline == found.only_candidate == ()
    assert found.reviewer == ""


def test_cp5_swapping_the_runs_matches_the_same_modules(tmp_path: Path) -> None:
    there, back = proposed(tmp_path / "x", HF, MEGATRON), proposed(tmp_path / "y", MEGATRON, HF)
    pairs = {tuple(one.rule.partition(":")[2].split("=")) for one in there.maps}
    assert {(b, a) for a, b in pairs} >= {tuple(one.rule.partition(":")[2].split("=")) for one in back.maps} - {
        ("embedding.word", "model.embed")
    }
    assert {(one.candidate, one.baseline) for one in there.related} == {(o.baseline, o.candidate) for o in back.related}


def test_cp5_equal_names_need_no_map_and_tell_equal_sums_apart(tmp_path: Path) -> None:
    found = proposed(tmp_path, HF, HF)
    assert (found.maps, found.related, found.ambiguous) == ((), (), ())


def test_cp5_a_called_wrapper_of_one_run_is_read_away(tmp_path: Path) -> None:
    ours = {"model.a.weight": Q, "head.weight": K}
    found = proposed(tmp_path, ours, {"a.weight": Q, "head.weight": K}, called=["model", "model.a", "head"])
    assert [one.rule for one in found.maps] == ["baseline:model="]


def test_cp5_what_differs_in_one_element_is_not_proposed(tmp_path: Path) -> None:
    other = Q.copy()
    other[3, 3] += 1.0
    found = proposed(tmp_path, {"a.weight": Q, "b.weight": K}, {"x.weight": other, "y.weight": K})
    assert [one.rule for one in found.maps] == ["baseline:b=y"]
    assert (found.only_baseline, found.only_candidate) == (("a.weight",), ("x.weight",))


def test_cp5_a_transposed_parameter_is_said_to_be_one(tmp_path: Path) -> None:
    wide = numbers(9, 4, 16)
    found = proposed(tmp_path, {"a.weight": wide}, {"x.kernel": np.ascontiguousarray(wide.T)})
    assert [one.rule for one in found.maps] == ["baseline:a=x", "baseline:a.weight=x.kernel"]
    (shape,) = found.related
    assert shape.relation is Related.OTHER_SHAPE
    assert "[4, 16] and [16, 4]" in shape.evidence


def test_cp5_shards_that_add_up_to_a_whole_suggest_dims(tmp_path: Path) -> None:
    a, b = run(tmp_path / "A", {"w.weight": Q, "n.weight": K}), run(tmp_path / "B", {"w.weight": Q}, ranks=2)
    with open_run(a) as one, open_run(b) as two:
        found = propose(one, two, settings=Settings())
    (shards,) = found.related
    assert (shards.relation, shards.use) == (Related.SHARDS, "--dims candidate:w.weight=ranks:0")
    assert found.only_baseline == ("n.weight",)


def test_cp5_more_than_one_way_to_add_up_is_not_proposed(tmp_path: Path) -> None:
    """Two pairs of parts have the sum of the whole."""
    parts = {"m.a.weight": Q, "m.b.weight": K, "m.c.weight": Q.copy(), "m.d.weight": V}
    found = proposed(tmp_path, parts, {"x.f.weight": np.concatenate([Q, K]), "x.g.weight": np.concatenate([Q, V])})
    assert all(one.relation is not Related.FUSED for one in found.related)


def test_cp5_runs_without_parameters_are_refused(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError) as caught:
        proposed(tmp_path, {}, {})
    assert caught.value.code == "no_parameters"


# --- matching, on any tree ------------------------------------------------------------------------------------------

NAMES = st.lists(st.text("ab", min_size=1, max_size=2), min_size=1, max_size=3).map(".".join)
TOTALS: st.SearchStrategy[Total] = st.tuples(st.integers(0, 3), st.just(4), st.just(("float32",)))
TREES = st.dictionaries(NAMES, TOTALS, max_size=8).map(
    lambda found: Weights(
        step=0,
        weights={f"{n}.weight": Weight(name=f"{n}.weight", shape=(4,), total=t) for n, t in found.items()},
        called=frozenset(found),
    )
)


@settings(max_examples=200, deadline=None)
@given(TREES, TREES)
def test_cp5_what_is_matched_has_equal_sums_and_is_matched_once_and_mirrored(a: Weights, b: Weights) -> None:
    found, back = matched(a, b), matched(b, a)
    totals = (a.totals(), b.totals())
    for ours, theirs in found.there.items():
        assert not ours or totals[0][ours] == totals[1][theirs]
        assert found.back[theirs] == ours
    assert found.there == {theirs: ours for ours, theirs in back.there.items()}


@settings(max_examples=200, deadline=None)
@given(TREES)
def test_cp5_a_run_against_itself_needs_no_map(a: Weights) -> None:
    found = matched(a, a)
    assert all(ours == theirs for ours, theirs in found.there.items())
    assert rules_of(found, a, a) == ()


@settings(max_examples=200, deadline=None)
@given(TREES, TREES)
def test_cp5_the_maps_read_matched_modules_alike(a: Weights, b: Weights) -> None:
    found = matched(a, b)
    rules = [parse_map(one.rule) for one in rules_of(found, a, b)]

    def read(name: str, side: str) -> str:
        rule = rule_for(name, rules, of=Of.MODULE, side=side, rank=0)
        return name if rule is None else rule[1]

    for ours, theirs in found.there.items():
        if ours:
            assert read(ours, "baseline") == read(theirs, "candidate")


def test_cp5_a_module_that_keeps_its_name_is_not_read_out_of_what_is_around_it() -> None:
    total = (0, 4, ("float32",))
    a, b = (
        Weights(step=0, weights={n: Weight(name=n, shape=(4,), total=total) for n in names}, called=frozenset("a"))
        for names in (("a.weight", "a.a.weight"), ("a.a.weight",))
    )
    assert rules_of(matched(a, b), a, b) == ()


def test_ca8_totals_add_up_mod_2_to_the_64() -> None:
    assert added([(2**64 - 1, 1, ("float32",)), (2, 3, ("bfloat16",))]) == (1, 4, ("bfloat16", "float32"))


# --- the file ---------------------------------------------------------------------------------------------------------


def text_of(found: NameMap) -> bytes:
    return msgspec.json.encode(found)


def test_cp5_a_file_that_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(RequestError) as caught:
        accepted_maps(b"[" * 100_000, name="m.json")
    assert caught.value.code == "bad_name_map"


def test_cp5_nothing_is_taken_before_a_person_has_looked_at_all_of_it(tmp_path: Path) -> None:
    found = proposed(tmp_path, HF, MEGATRON)
    with pytest.raises(RequestError) as caught:
        accepted_maps(text_of(found), name="m.json")
    assert caught.value.code == "bad_name_map"
    assert len(caught.value.details) == 2 + len(found.maps)
    reviewed = [replace(one, review=ReviewState.ACCEPTED) for one in found.maps]
    reviewed[0] = replace(reviewed[0], review=ReviewState.REJECTED, reason="tied on one side only")
    taken = accepted_maps(text_of(replace(found, reviewer="Ada", maps=tuple(reviewed))), name="m.json")
    assert [str(rule) for rule in taken] == [one.rule for one in found.maps[1:]]


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"\xff", b'{"format": "paritrace-alignment-map", "maps": [{}]}'])
def test_cp5_what_is_no_map_is_refused(data: bytes) -> None:
    with pytest.raises(RequestError) as caught:
        accepted_maps(data, name="m.json")
    assert caught.value.details
