"""The invariants of one run, rule by rule: passes, fails with its evidence, says when it cannot be checked (CP-25)."""

from collections.abc import Callable, Sequence
from typing import cast

import pytest
from msgspec import Struct

from paritrace.compare.checks_result import Invariant, Outcome, RankCoverage
from paritrace.compare.checks_rules_coverage import coverage_invariants
from paritrace.compare.checks_rules_parameters import parameter_invariants
from paritrace.compare.checks_rules_values import value_invariants
from paritrace.evidence.calls import ConfigMark, Row, State
from paritrace.evidence.definition import Definition
from tests.compare import check_records as r

Records = list[Row | Definition]
COVERAGE = RankCoverage(
    rank=0,
    session_id="s",
    status="completed",
    steps_seen=(0, 1, 2),
    expected_steps=3,
    levels=("digest",),
    calls=3,
    states=9,
    gaps={},
    losses=0,
    bytes_lost=0,
    has_receipt=True,
    not_captured=("scheduler",),
)


def invariants(records: Sequence[Struct]) -> dict[str, Invariant]:
    facts = r.facts_of(cast(Records, records))
    found = [*parameter_invariants(facts, rank=0), *value_invariants(facts, rank=0)]
    assert len({invariant.id for invariant in found}) == len(found)
    return {invariant.id: invariant for invariant in found}


def changed(change: Callable[[Row | Definition], Row | Definition | None]) -> Records:
    """Returns the healthy run with each record replaced by what `change` makes of it (None: left out)."""
    return [new for record in r.training() if (new := change(record)) is not None]


def only_states(wanted: Callable[[State], bool]) -> Records:
    return changed(lambda record: record if not isinstance(record, State) or wanted(record) else None)


def test_cp25_a_healthy_run_fails_nothing() -> None:
    found = invariants(r.training())
    assert {name for name, invariant in found.items() if invariant.status is not Outcome.PASS} == set()


def test_cp25_nothing_recorded_is_not_checkable_and_never_a_pass() -> None:
    found = invariants(r.definitions()[:1])
    assert {invariant.id for invariant in found.values() if invariant.status is Outcome.PASS} <= {
        "parameters.tied",
        "recomputation.equals_original",
    }
    assert not [invariant for invariant in found.values() if invariant.status is Outcome.FAIL]
    assert all(i.evidence.reason for i in found.values() if i.status is Outcome.NOT_CHECKABLE)


def test_cp25_a_parameter_without_gradient_is_named() -> None:
    def forget_bias(record: Row | Definition) -> Row | Definition:
        if isinstance(record, State) and record.moment == "grads":
            return r.gradients(record.step, record.values[0], r.NO_GRADIENT, names=9)
        return record

    records: Records = [
        *r.definitions(),
        r.state_names(9, "gradient", kinds=(r.TRAINABLE, -1)),
        *changed(forget_bias)[14:],
    ]
    found = invariants(records)["parameters.have_gradient"]
    assert found.status is Outcome.FAIL
    assert found.evidence.names == ("layer.bias",)
    assert invariants(records)["parameters.change"].status is Outcome.PASS


def test_cp25_a_frozen_parameter_without_gradient_is_no_failure() -> None:
    frozen: Records = [
        *r.definitions()[:11],
        r.state_names(r.PARAMETERS, "parameter", kinds=(r.TRAINABLE, r.FLOAT32)),
        r.state_names(r.GRADIENTS, "gradient", names=("layer.weight",)),
        r.begin(0, "a0", "b0"),
        r.gradients(0, "d0"),
        r.step_mark(0),
        r.begin(1, "a1", "b0"),
    ]
    found = invariants(frozen)
    assert found["parameters.have_gradient"].status is Outcome.PASS
    assert found["parameters.in_optimizer"].status is Outcome.PASS


def test_cp25_a_trainable_parameter_that_no_optimizer_holds_is_named() -> None:
    records: Records = [
        *r.definitions()[:12],
        r.state_names(r.GRADIENTS, "gradient", names=("layer.weight",)),
        r.begin(0, "a0", "b0"),
        r.gradients(0, "d0"),
        r.step_mark(0),
    ]
    found = invariants(records)["parameters.in_optimizer"]
    assert (found.status, found.evidence.names) == (Outcome.FAIL, ("layer.bias",))


@pytest.mark.parametrize(
    ("values", "names"),
    [
        (("a0", "a0"), ()),  # two names of one parameter
        (("a0", "b0"), ("layer.bias",)),
        ((r.ONES, r.ONES), ("layer.bias",)),  # filled alike, no sign that they are one
    ],
)
def test_cp25_a_tied_parameter_is_held_under_its_other_name(values: tuple[str, str], names: tuple[str, ...]) -> None:
    records = [
        *r.definitions()[:12],
        r.state_names(r.GRADIENTS, "gradient", names=("layer.weight",)),
        r.begin(0, *values),
        r.gradients(0, "d0"),
        r.step_mark(0),
    ]
    assert invariants(records)["parameters.in_optimizer"].evidence.names == names


def test_cp25_filled_parameters_that_change_together_are_one() -> None:
    records = [
        *r.definitions()[:12],
        r.state_names(r.GRADIENTS, "gradient", names=("layer.weight",)),
        r.begin(0, r.ONES, r.ONES),
        r.gradients(0, "d0"),
        r.step_mark(0),
        r.begin(1, "a1", "a1"),
    ]
    assert invariants(records)["parameters.in_optimizer"].status is Outcome.PASS


def test_cp25_a_result_of_nothing_but_nan_is_not_called_narrowed() -> None:
    everywhere = [
        *r.definitions(),
        r.call(5),
        r.detail(5, "i", low_bits_zero=1),
        r.detail(5, "o", nan=r.NUM_ELEMENTS, low_bits_zero=0),
    ]
    assert invariants(everywhere)["dtypes.no_hidden_narrowing"].status is Outcome.PASS


def test_cp25_a_parameter_that_never_changes_is_named_with_the_learning_rate() -> None:
    def keep_weight(record: Row | Definition) -> Row | Definition:
        if isinstance(record, State) and record.moment == "begin":
            return r.begin(record.step, "a" * 16, record.values[1])
        return record

    found = invariants(changed(keep_weight))["parameters.change"]
    assert (found.status, found.evidence.names, found.evidence.total) == (Outcome.FAIL, ("layer.weight",), 1)
    assert any("AdamW group0: learning rate 0.001" in fact for fact in found.evidence.facts)


def test_cp25_a_parameter_that_changed_once_is_alive() -> None:
    def keep_at_first(record: Row | Definition) -> Row | Definition:
        if isinstance(record, State) and record.moment == "begin" and record.step < 2:
            return r.begin(record.step, "a" * 16, record.values[1])
        return record

    assert invariants(changed(keep_at_first))["parameters.change"].status is Outcome.PASS


def test_cp25_without_an_optimizer_step_between_states_change_is_not_checkable() -> None:
    found = invariants(r.training(steps=1))["parameters.change"]
    assert found.status is Outcome.NOT_CHECKABLE
    unstepped = changed(
        lambda record: r.step_mark(0, optimizer_steps=0) if type(record) is type(r.step_mark(0)) else record
    )
    assert invariants(unstepped)["parameters.change"].status is Outcome.NOT_CHECKABLE


def test_cp25_a_gradient_that_is_zero_throughout_is_named() -> None:
    def zero(record: Row | Definition) -> Row | Definition:
        if isinstance(record, State) and record.moment == "grads":
            return r.gradients(record.step, r.ZEROS, record.values[1])
        return record

    found = invariants(changed(zero))["gradients.not_zero"]
    assert (found.status, found.evidence.names) == (Outcome.FAIL, ("layer.weight",))


def test_cp25_a_gradient_that_is_zero_once_is_a_fact_no_failure() -> None:
    def zero(record: Row | Definition) -> Row | Definition:
        if isinstance(record, State) and record.moment == "grads" and record.step == 1:
            return r.gradients(1, r.ZEROS, record.values[1])
        return record

    found = invariants(changed(zero))["gradients.not_zero"]
    assert (found.status, found.evidence.facts[0][:6]) == (Outcome.PASS, "1 more")


def test_cp25_a_batch_that_comes_again_is_named_by_both_steps() -> None:
    def again(record: Row | Definition) -> Row | Definition:
        return (
            r.batch(2, "c" + "0" * 15) if isinstance(record, State) and record == r.batch(2, f"c{2:015x}") else record
        )

    found = invariants(changed(again))["batches.not_repeated"]
    assert (found.status, found.step, found.evidence.total) == (Outcome.FAIL, 2, 1)
    assert "step 2 micro-batch 0 has the elements of step 0 micro-batch 0" in found.evidence.facts


def test_cp25_two_models_fed_in_one_micro_batch_are_no_repeat() -> None:
    records: Records = []
    for record in r.training():
        records += [record, record] if isinstance(record, State) and record.moment == "batch" else [record]
    assert invariants(records)["batches.not_repeated"].status is Outcome.PASS


def test_cp25_micro_batches_that_repeat_within_a_step_are_named() -> None:
    records: Records = [*r.definitions(), r.batch(0, "c" * 16), r.batch(0, "c" * 16, microbatch=1)]
    assert invariants(records)["batches.not_repeated"].status is Outcome.FAIL


@pytest.mark.parametrize(
    ("rates", "status"),
    [
        (["0.001"], Outcome.PASS),
        (["0.0"], Outcome.FAIL),
        (["0", "0.0"], Outcome.FAIL),
        (["0.0", "0.001"], Outcome.PASS),
        (["tensor"], Outcome.PASS),
        ([], Outcome.NOT_CHECKABLE),
    ],
)
def test_cp25_a_learning_rate_of_zero_fails_unless_it_rises(rates: list[str], status: Outcome) -> None:
    records: Records = [*r.definitions(), *(r.optimizer(group0=rate) for rate in rates)]
    assert invariants(records)["optimizer.learning_rate"].status is status


def tied_model(*, head: tuple[str, str], declared: str) -> Records:
    names = ("model.embed_tokens.weight", "lm_head.weight")
    records: Records = [
        *r.definitions()[:11],
        r.state_names(r.PARAMETERS, "parameter", names=names),
        r.state_names(r.GRADIENTS, "gradient", names=names),
        ConfigMark("model", {"tie_word_embeddings": declared}),
    ]
    for step in range(2):
        records += [r.begin(step, f"a{step}", head[step]), r.gradients(step, "d0", "d0"), r.step_mark(step)]
    return records


def test_a19_declared_tied_but_observed_apart_fails() -> None:
    found = invariants(tied_model(head=("a0", "b1"), declared="True"))["parameters.tied"]
    assert (found.status, found.evidence.names) == (Outcome.FAIL, ("lm_head.weight",))
    assert "tie_word_embeddings: True" in found.evidence.facts[0]


def test_cp25_tied_parameters_are_a_fact() -> None:
    found = invariants(tied_model(head=("a0", "a1"), declared="True"))["parameters.tied"]
    assert found.status is Outcome.PASS
    assert found.evidence.facts[1:] == ("alike at 2 recorded steps: lm_head.weight, model.embed_tokens.weight",)
    assert invariants(tied_model(head=("a0", "b1"), declared="False"))["parameters.tied"].status is Outcome.PASS


def test_cp25_parameters_that_start_alike_and_never_change_are_not_called_tied() -> None:
    records: Records = [*r.definitions(), r.begin(0, "a", "a"), r.begin(1, "a", "a")]
    assert invariants(records)["parameters.tied"].evidence.facts == ()


def test_a06_the_first_non_finite_value_is_that_of_the_innermost_call() -> None:
    """An enclosing call leaves later; a NaN in its input was there when it was entered."""
    records: Records = [
        *r.definitions(),
        r.call(5, left=6),
        r.detail(5, "o", nan=3),
        r.call(2, left=9),
        r.detail(2, "i"),
        r.detail(2, "o", nan=7),
    ]
    found = invariants(records)["values.finite"]
    assert found.status is Outcome.FAIL
    assert (found.evidence.record_ids, found.evidence.total) == ((5,), 2)
    assert (found.evidence.file, found.evidence.line, found.evidence.module) == ("train.py", 12, "model.layer")
    assert "3 NaN, 0 +infinity, 0 -infinity" in found.evidence.facts[0]
    fed: Records = [
        *r.definitions(),
        r.call(5, left=6),
        r.detail(5, "o", nan=3),
        r.call(2, left=9),
        r.detail(2, "i", nan=1),
    ]
    assert invariants(fed)["values.finite"].evidence.record_ids == (2,)


def test_cp25_positive_infinity_fails_and_a_mask_of_negative_infinity_does_not() -> None:
    masked: Records = [*r.definitions(), r.call(5), r.detail(5, "i", negative=4)]
    found = invariants(masked)["values.finite"]
    assert found.status is Outcome.PASS
    assert "-infinity alone, as masks do" in found.evidence.facts[1]
    infinite: Records = [*r.definitions(), r.call(5), r.detail(5, "i", positive=1)]
    assert invariants(infinite)["values.finite"].status is Outcome.FAIL


def test_a05_without_summaries_finiteness_is_not_checkable() -> None:
    assert invariants([*r.definitions(), r.call(5)])["values.finite"].status is Outcome.NOT_CHECKABLE


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_cp25_a_loss_that_is_not_finite_fails_at_its_step(value: str) -> None:
    records: Records = [*r.definitions(), r.loss(0), r.loss(1, value), r.loss(2, value)]
    found = invariants(records)["loss.finite"]
    assert (found.status, found.step, found.evidence.steps) == (Outcome.FAIL, 1, (1, 2))


def test_cp25_a_gradient_norm_that_is_not_finite_fails_and_a_gap_is_no_number() -> None:
    records: Records = [*r.definitions(), r.step_mark(0, norm=r.NO_GRADIENT), r.step_mark(1, norm="inf")]
    found = invariants(records)["gradients.norm_finite"]
    assert (found.status, found.step) == (Outcome.FAIL, 1)
    assert found.evidence.facts[0] == "1 of 2 recorded"
    gaps: Records = [*r.definitions(), r.step_mark(0, norm=r.NO_GRADIENT)]
    assert invariants(gaps)["gradients.norm_finite"].status is Outcome.NOT_CHECKABLE


def narrowed(
    *, inside: bool = False, samples: str = r.SPREAD, wide_input: bool = True, step_between: bool = False
) -> Records:
    low = 1 if wide_input else r.NUM_ELEMENTS
    inner: Records = [r.call(6, left=7, inputs=(r.BFLOAT16,), outputs=(r.BFLOAT16,))] if inside else []
    return [
        *r.definitions(),
        *inner,
        *([r.step_mark(0)] if step_between else []),
        r.call(5, left=9),
        r.detail(5, "i", low_bits_zero=low),
        r.detail(5, "o", low_bits_zero=r.NUM_ELEMENTS, samples=samples),
    ]


def test_cp25_float32_that_went_through_bfloat16_unseen_fails_with_its_place() -> None:
    found = invariants(narrowed())["dtypes.no_hidden_narrowing"]
    assert (found.status, found.evidence.record_ids) == (Outcome.FAIL, (5,))
    assert "output 0 of Linear: all 128 elements fit bfloat16" in found.evidence.facts[0]


@pytest.mark.parametrize(
    "records",
    [
        narrowed(inside=True),  # the narrower dtype was recorded: declared
        narrowed(samples="3f800000" * 64),  # a mask or one-hot code
        narrowed(wide_input=False),  # the input fits bfloat16 already
    ],
)
def test_cp25_no_hidden_narrowing_is_claimed_where_another_reason_stands(records: Records) -> None:
    assert invariants(records)["dtypes.no_hidden_narrowing"].status is Outcome.PASS


def test_cp25_a_narrower_call_of_an_earlier_step_declares_nothing() -> None:
    found = invariants(narrowed(inside=True, step_between=True))["dtypes.no_hidden_narrowing"]
    assert found.status is Outcome.FAIL


def test_cp25_declared_narrowing_is_a_fact_with_its_place_and_count() -> None:
    narrow = [r.call(number, inputs=(r.FLOAT32,), outputs=(r.BFLOAT16,)) for number in (5, 7, 9)]
    found = invariants([*r.definitions(), *narrow])["dtypes.no_hidden_narrowing"]
    assert found.status is Outcome.PASS
    assert found.evidence.facts[0].startswith("float32 to bfloat16: Linear at train.py")
    assert found.evidence.facts[0].endswith("3 calls from step 0")
    widened = [r.call(5, inputs=(r.BFLOAT16,), outputs=(r.FLOAT32,))]
    assert invariants([*r.definitions(), *widened])["dtypes.no_hidden_narrowing"].evidence.facts == ()


def test_cp25_recomputation_is_compared_with_its_original() -> None:
    same: Records = [*r.definitions(), r.call(5, bits="1" * 16), r.recompute(9, link=5, bits="1" * 16)]
    other: Records = [*r.definitions(), r.call(5, bits="1" * 16), r.recompute(9, link=5, bits="2" * 16)]
    assert invariants(same)["recomputation.equals_original"].status is Outcome.PASS
    found = invariants(other)["recomputation.equals_original"]
    assert (found.status, found.evidence.record_ids) == (Outcome.FAIL, (9,))
    assert "original call 5" in found.evidence.facts[0]


def test_cp25_recomputation_without_its_original_or_without_bits_is_not_checkable() -> None:
    orphan: Records = [*r.definitions(), r.recompute(9, link=5, bits="1" * 16)]
    unread: Records = [*r.definitions(), r.call(5, bits=r.NO_GRADIENT), r.recompute(9, link=5, bits="1" * 16)]
    for records in (orphan, unread):
        assert invariants(records)["recomputation.equals_original"].status is Outcome.NOT_CHECKABLE


def evidence_of(**changes: object) -> dict[str, Invariant]:
    from msgspec.structs import replace

    return {found.id: found for found in coverage_invariants(replace(COVERAGE, **changes))}


def test_cp25_whole_evidence_passes() -> None:
    assert {found.status for found in evidence_of().values()} == {Outcome.PASS}


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "interrupted; cause unknown"},
        {"has_receipt": False},
        {"losses": 1, "bytes_lost": 7},
    ],
)
def test_cp25_evidence_that_is_not_whole_fails(changes: dict[str, object]) -> None:
    assert evidence_of(**changes)["evidence.journal_whole"].status is Outcome.FAIL


def test_ca24_steps_are_judged_only_when_they_were_declared() -> None:
    assert evidence_of(expected_steps=4)["evidence.steps_complete"].status is Outcome.FAIL
    assert evidence_of(expected_steps=None)["evidence.steps_complete"].status is Outcome.NOT_CHECKABLE


def test_cp25_what_was_not_observable_is_counted_by_reason() -> None:
    found = evidence_of(gaps={"thread_not_covered": 2})["evidence.all_observed"]
    assert (found.status, found.evidence.reason) == (Outcome.NOT_CHECKABLE, "thread_not_covered: 2")
