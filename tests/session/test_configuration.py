"""The rule of the configuration: the order of sources, limits, shares, notes; what is given is never scaled."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from paritrace.session.commands import Reason
from paritrace.session.configuration import (
    Given,
    Resolved,
    Source,
    changed_fields,
    needs_rebuild,
    problem_of,
    resolved,
)
from paritrace.session.workload import RUN_BOUNDARY, ConfigField

FIELDS = (
    ConfigField("share", share_of="batch"),
    ConfigField("lr", 0.1, minimum=0.0, maximum=1.0, impact=RUN_BOUNDARY),
    ConfigField("batch", 8, minimum=1),
    ConfigField("warmup", 100, scaled_by_world_size=True),
    ConfigField("kind", "adamw", choices=("adamw", "sgd")),
    ConfigField("every", 50, owned_by_request=True, impact=RUN_BOUNDARY),
)


def made(asked: Given, *, ranks: int = 2) -> Resolved:
    found = resolved(FIELDS, asked, asked_world_size=ranks, joined_world_size=ranks)
    assert isinstance(found, Resolved), found
    return found


def refused(asked: Given, *, asked_ranks: int = 2, joined_ranks: int = 2) -> tuple[Reason, ...]:
    found = resolved(FIELDS, asked, asked_world_size=asked_ranks, joined_world_size=joined_ranks)
    assert not isinstance(found, Resolved), found
    return found


def source_of(found: Resolved, name: str) -> Source:
    return next(one.source for one in found.settings if one.name == name)


def test_se25_without_anything_given_every_value_is_a_default_and_shares_are_derived() -> None:
    found = made(Given())
    assert found.values == {"share": 4, "lr": 0.1, "batch": 8, "warmup": 200, "kind": "adamw", "every": 50}
    assert {one.source for one in found.settings} == {Source.DEFAULT, Source.DERIVED}
    assert not found.notes


def test_se25_the_order_is_default_checkpoint_owned_request() -> None:
    stored = {"lr": 0.2, "batch": 16, "every": 7, "kind": "sgd", "warmup": 30}
    found = made(Given(stored=stored, owned={"every": 9}, requested={"batch": 32}))
    assert found.values == {"share": 16, "lr": 0.2, "batch": 32, "warmup": 30, "kind": "sgd", "every": 9}
    assert source_of(found, "lr") is Source.CHECKPOINT
    assert source_of(found, "every") is source_of(found, "batch") is Source.REQUEST
    assert any("batch: 16 in the checkpoint, 32 by the request" in note for note in found.notes)
    assert any("every: 7 in the checkpoint, 9 by the request" in note for note in found.notes)


def test_se25_a_request_owns_a_field_even_where_it_gives_no_value() -> None:
    found = made(Given(stored={"every": 7}))
    assert found.values["every"] == 50
    assert source_of(found, "every") is Source.DEFAULT


@given(ranks=st.integers(1, 64), warmup=st.integers(0, 10_000), by_checkpoint=st.booleans())
def test_se25_a_stored_or_given_value_is_never_scaled(ranks: int, warmup: int, *, by_checkpoint: bool) -> None:
    values = {"warmup": warmup, "batch": ranks * 3}
    found = made(Given(stored=values) if by_checkpoint else Given(requested=values), ranks=ranks)
    assert found.values["warmup"] == warmup
    assert found.values["share"] == 3
    again = made(Given(stored=found.values), ranks=ranks)
    assert again.values["warmup"] == warmup


def test_se25_a_stored_share_is_made_again_among_the_ranks_that_joined_and_said() -> None:
    found = made(Given(stored={"share": 4, "batch": 8}), ranks=4)
    assert found.values["share"] == 2
    assert any("share: 4 in the checkpoint, 2 among the ranks that joined" in note for note in found.notes)


def test_se25_another_number_of_ranks_than_asked_for_is_refused() -> None:
    reasons = refused(Given(), asked_ranks=4, joined_ranks=2)
    assert [one.code for one in reasons] == ["another_world_size"]
    assert "2 ranks joined where 4 were asked for" in reasons[0].words


def test_se25_unknown_keys_of_a_request_are_refused_and_dropped_by_name_where_tolerated() -> None:
    asked = {"learning_rate": 1.0, "lr": 0.3}
    assert [one.code for one in refused(Given(requested=asked))] == ["unknown_field"]
    found = made(Given(requested=asked, tolerate_unknown=True))
    assert found.dropped == ("learning_rate",)
    assert found.values["lr"] == 0.3
    assert any(note.startswith("learning_rate") for note in found.notes)


def test_se8_unknown_keys_of_a_checkpoint_are_dropped_and_missing_ones_defaulted_with_notes() -> None:
    found = made(Given(stored={"momentum": 0.9, "lr": 0.2}))
    assert found.dropped == ("momentum",)
    assert any("momentum: stored by the checkpoint, unknown" in note for note in found.notes)
    assert any("kind: not stored by the checkpoint: the default 'adamw'" in note for note in found.notes)


def test_se8_every_reason_is_said_at_once() -> None:
    reasons = refused(Given(requested={"lr": 2.0, "kind": "lion", "batch": 7, "nonsense": 1, "share": 3}))
    assert {one.code for one in reasons} == {"invalid_value", "uneven_share", "unknown_field", "derived_field"}
    assert len(reasons) == 5
    assert all(one.rank == -1 for one in reasons)


def test_se8_an_invalid_value_of_a_checkpoint_is_refused_with_its_source() -> None:
    (reason,) = refused(Given(stored={"lr": -1.0}))
    assert "below 0.0 (from the checkpoint)" in reason.words


@pytest.mark.parametrize(
    ("value", "wrong"),
    [(0.5, False), (1, False), (True, True), ("0.5", True), (float("nan"), True), (1.5, True), (None, True)],
)
def test_se26_a_number_within_its_limits_and_nothing_else_is_taken(value: object, *, wrong: bool) -> None:
    assert (problem_of(FIELDS[1], value=value) is not None) is wrong


def test_se26_a_flag_takes_a_flag_only_and_a_default_of_none_takes_anything() -> None:
    flag = ConfigField("flag", default=False)
    assert problem_of(flag, value=True) is None
    assert problem_of(flag, value=1) is not None
    assert problem_of(ConfigField("free"), value=[1, 2]) is None


def test_se26_requested_applied_default_and_limits_are_told_apart() -> None:
    found = made(Given(stored={"lr": 0.2}, requested={"lr": 0.3}))
    lr = next(one for one in found.settings if one.name == "lr")
    assert (lr.requested, lr.value, lr.default, lr.stored) == (0.3, 0.3, 0.1, 0.2)
    assert lr.limits == {"minimum": 0.0, "maximum": 1.0}
    kind = next(one for one in found.settings if one.name == "kind")
    assert kind.requested is UNSET
    assert kind.limits == {"choices": ["adamw", "sgd"]}


def test_se9_changed_fields_and_those_that_need_a_rebuild() -> None:
    before, after = made(Given()), made(Given(requested={"lr": 0.3, "batch": 16}))
    assert changed_fields(before, after) == ("share", "lr", "batch")
    assert needs_rebuild(before, after) == ("share", "batch")
    assert before.digest != after.digest
    assert before.digest == made(Given(requested={"lr": 0.1})).digest
