"""Requests of two sources are one by their ids, or not at all (IN-14, IN-15)."""

from hypothesis import given
from hypothesis import strategies as st

from paritrace.evidence.ids import Ref
from paritrace.inference.importers.spans import open_spans
from paritrace.inference.request_joining import Identified, JoinBasis, Joined, join, joins, sources_of
from tests.inference.importers.drawn import DATA, drawn


def one(producer: str, name: str, *ids: str) -> Identified:
    return Identified(Ref(producer, name), frozenset(ids))


def test_the_same_id_and_the_servers_spelling_of_it_join() -> None:
    ours = [one("c", "1", "abc"), one("c", "2", "d-1"), one("c", "3"), one("c", "4", "nobody")]
    theirs = [one("s", "9", "abc"), one("s", "8", "chatcmpl-d-1")]
    found = join("client", ours, "server", theirs)
    assert found.joined == (
        Joined(Ref("c", "1"), Ref("s", "9"), JoinBasis.SAME_ID),
        Joined(Ref("c", "2"), Ref("s", "8"), JoinBasis.SERVERS_SPELLING),
    )
    assert found.unjoined == {"no_counterpart": 1, "no_id": 1}


def test_real_spans_of_vllm_join_the_ids_that_their_client_gave() -> None:
    spans = sources_of(drawn(open_spans, DATA / "vllm" / "q05_spans_sample.jsonl").events)["otlp"]
    ours = [one("c", str(n), f"q05-warmup-r{n:04}") for n in range(4)]
    found = join("client", ours, "otlp", spans)
    assert [(pair.first.id, pair.second.id) for pair in found.joined] == [
        (str(n), f"cmpl-q05-warmup-r{n:04}-0") for n in range(4)
    ]


def test_an_id_that_two_have_joins_none() -> None:
    found = join("client", [one("c", "1", "a")], "server", [one("s", "1", "a"), one("s", "2", "a")])
    assert (found.joined, found.unjoined) == ((), {"ambiguous": 1})
    found = join("client", [one("c", "1", "a"), one("c", "2", "a")], "server", [one("s", "1", "a")])
    assert (found.joined, found.unjoined) == ((), {"ambiguous": 2})


def test_a_prompts_place_is_part_of_an_id_only_where_it_is_one() -> None:
    several = [one("s", str(n), f"cmpl-x-{n}") for n in range(2)]  # one request of two prompts
    assert join("client", [one("c", "1", "x")], "server", several).unjoined == {"ambiguous": 1}
    assert len(join("client", [one("c", "1", "x-1")], "server", several).joined) == 1


def test_every_two_sources_are_looked_at() -> None:
    sources = {name: [one(name, "1", "a")] for name in ("a", "b", "c")}
    assert [(found.first, found.second, len(found.joined)) for found in joins(sources)] == [
        ("a", "b", 1),
        ("a", "c", 1),
        ("b", "c", 1),
    ]


IDS = st.lists(st.sampled_from(["a", "b", "cmpl-a-0", "chatcmpl-b", "c"]), max_size=2)


@given(st.lists(IDS, max_size=5), st.lists(IDS, max_size=5))
def test_a_request_is_joined_once_at_most_and_the_same_from_both_sides(a: list[list[str]], b: list[list[str]]) -> None:
    ours = [one("l", str(n), *ids) for n, ids in enumerate(a)]
    theirs = [one("r", str(n), *ids) for n, ids in enumerate(b)]
    found = join("l", ours, "r", theirs)
    pairs = {(pair.first, pair.second) for pair in found.joined}
    assert len({first for first, _ in pairs}) == len({second for _, second in pairs}) == len(found.joined)
    assert len(found.joined) + sum(found.unjoined.values()) == len(ours)
    assert {(pair.second, pair.first) for pair in join("r", theirs, "l", ours).joined} == pairs
