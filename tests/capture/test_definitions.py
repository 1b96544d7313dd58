"""Definitions are written once, before their first use, with dense ids (CA-4, CA-23)."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from paritrace.capture.definitions import Definitions
from paritrace.evidence import calls
from paritrace.evidence.calls import Level, OriginKind, Phase
from paritrace.evidence.definition import Definition

names = st.sampled_from(["", "a", "b", "name", "origin"])
small = st.integers(0, 3)
asks: st.SearchStrategy[tuple[str, tuple[object, ...]]] = st.one_of(
    st.tuples(st.just("name"), st.tuples(names)),
    st.tuples(st.just("function"), st.tuples(names, st.sampled_from(Level))),
    st.tuples(st.just("scope"), st.tuples(small, names, names, small)),
    st.tuples(st.just("origin"), st.tuples(st.sampled_from(OriginKind), names)),
    st.tuples(st.just("scalars"), st.tuples(st.dictionaries(names, names))),
    st.tuples(st.just("context"), st.tuples(small, small, st.sampled_from(Phase), st.dictionaries(names, names))),
    st.tuples(st.just("state_names"), st.tuples(names, st.lists(names).map(tuple), st.lists(small).map(tuple))),
)
FIRST = {"scope": 1}  # scope 0 is the root and is not written


def facts(record: Definition) -> tuple[object, ...]:
    """Everything but the id; a dictionary without its order."""
    found = ((key, getattr(record, key)) for key in record.__struct_fields__ if key != "id")
    return tuple((key, tuple(sorted(value.items())) if isinstance(value, dict) else value) for key, value in found)


@given(st.lists(asks, max_size=30))
def test_one_line_and_one_id_for_each_thing(wanted: list[tuple[str, tuple[object, ...]]]) -> None:
    written: list[Definition] = []
    definitions = Definitions(written.append)
    kinds: dict[str, Callable[..., int]] = {
        "name": definitions.name,
        "function": definitions.function,
        "scope": definitions.scope,
        "origin": definitions.origin,
        "scalars": definitions.scalars,
        "context": definitions.context,
        "state_names": definitions.state_names,
    }
    given_ids: dict[tuple[str, str], int] = {}
    for family, arguments in wanted:
        before = len(written)
        made = kinds[family](*arguments)
        key = (family, repr(arguments))
        assert given_ids.setdefault(key, made) == made
        assert len(written) - before <= 1
        if len(written) > before:
            assert vars_id(written[-1]) == made, "the line comes before the id is used"
    assert len({(type(record), facts(record)) for record in written}) == len(written), "nothing is defined twice"
    for kind in {type(record) for record in written}:
        ids = [vars_id(record) for record in written if type(record) is kind]
        first = 1 if kind is calls.Scope else 0
        assert ids == list(range(first, first + len(ids)))


def vars_id(record: Definition) -> int:
    made = getattr(record, "id")  # noqa: B009  every definition with an id has it, their base has none
    assert isinstance(made, int)
    return made


def test_equal_numbers_of_other_types_are_other_scalars() -> None:
    written: list[Definition] = []
    definitions = Definitions(written.append)
    assert definitions.scalars({"0": "1"}) != definitions.scalars({"0": "1.0"})
    assert definitions.scalars({"0": "1", "1": "2"}) != definitions.scalars({"0": "1", "2": "2"})


def test_a_scope_knows_its_module_and_turn() -> None:
    definitions = Definitions(lambda _: None)
    outer = definitions.scope(0, "model", "Model", 0)
    inner = definitions.scope(outer, "model.head", "Head", 2)
    assert (definitions.module(0), definitions.nth(0)) == ("", 0)
    assert (definitions.module(inner), definitions.nth(inner)) == ("model.head", 2)
    assert definitions.module(outer) == "model"


def test_a_context_is_a_copy_of_the_labels() -> None:
    written: list[Definition] = []
    labels: dict[str, str | int] = {"stage": "warmup"}
    Definitions(written.append).context(0, 0, Phase.FORWARD, labels)
    labels["stage"] = "main"
    (context,) = written
    assert isinstance(context, calls.Context)
    assert context.labels == {"stage": "warmup"}
