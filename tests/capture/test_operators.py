"""What an operator's schema says that it writes, draws and leaves uninitialised (CA-32, CA-35)."""

import pytest
import torch

from paritrace.capture.pytorch.operators import REGION, Operator, describe, region

aten = torch.ops.aten


def facts(operator: torch._ops.OpOverload) -> Operator:
    return describe(operator, 7)


def test_a_pure_operator_writes_nothing() -> None:
    found = facts(aten.addmm.default)
    assert (found.name, found.base, found.function_id) == ("aten.addmm.default", "addmm", 7)
    assert not found.written
    assert not any((found.inplace, found.uninitialised, found.seeded, found.collective, found.partly))


@pytest.mark.parametrize(
    ("operator", "written", "overwritten", "inplace"),
    [
        (aten.add_.Tensor, {0, "self"}, set(), True),
        (aten.copy_.default, {0, "self"}, {0, "self"}, True),
        (aten.zero_.default, {0, "self"}, {0, "self"}, True),
        (aten.fill_.Scalar, {0, "self"}, {0, "self"}, True),
        (aten.normal_.default, {0, "self"}, {0, "self"}, True),
        (aten.bernoulli_.float, {0, "self"}, {0, "self"}, True),
        (aten.add.out, {"out"}, {"out"}, False),
        (aten.sort.values, {"values", "indices"}, {"values", "indices"}, False),
        (aten._foreach_add_.List, {0, "self"}, set(), True),
        (aten._foreach_copy_.default, {0, "self"}, {0, "self"}, True),
        (aten._fused_adamw_.default, {0, 1, 2, 3, 4, "self"}, set(), True),
        (aten.native_batch_norm.default, {3, 4, "running_mean", "running_var"}, set(), False),
        (aten.index_put_.default, {0, "self"}, set(), True),
    ],
)
def test_what_is_written(
    operator: torch._ops.OpOverload, written: set[int | str], overwritten: set[int | str], inplace: bool
) -> None:
    found = facts(operator)
    assert found.written >= written
    assert found.overwritten == overwritten
    assert found.inplace is inplace


def test_every_operator_that_is_said_to_overwrite_exists_and_writes() -> None:
    """A name that torch no longer has would be a rule that never fires."""
    from paritrace.capture.pytorch import operators

    for name in (*operators.OVERWRITES, *operators._PARTLY, "_foreach_zero_", "_foreach_copy_"):
        packet = vars(torch.ops.aten).get(name) or getattr(torch.ops.aten, name)
        for overload in packet.overloads():
            found = facts(getattr(packet, overload))
            if overload.endswith("out") or "out" in overload.split("_"):
                continue
            assert 0 in found.written, f"{name}.{overload}"


@pytest.mark.parametrize(
    "operator",
    [aten.empty.memory_format, aten.empty_like.default, aten.empty_strided.default, aten.new_empty.default],
)
def test_allocators_leave_their_result_uninitialised(operator: torch._ops.OpOverload) -> None:
    assert facts(operator).uninitialised


@pytest.mark.parametrize("operator", [aten.zeros.default, aten.ones_like.default, aten.clone.default])
def test_others_do_not(operator: torch._ops.OpOverload) -> None:
    assert not facts(operator).uninitialised


@pytest.mark.parametrize("operator", [aten.native_dropout.default, aten.rand.default, aten.bernoulli.default])
def test_operators_that_draw(operator: torch._ops.OpOverload) -> None:
    assert facts(operator).seeded


def test_a_collective_is_known_by_its_namespace() -> None:
    assert facts(torch.ops._c10d_functional.all_reduce.default).collective


def test_a_storage_argument_is_seen() -> None:
    assert facts(aten.set_.source_Storage).reads_storage
    assert not facts(aten.set_.source_Tensor).reads_storage


def test_something_that_is_no_overload_writes_nothing_known() -> None:
    found = describe(torch.ops.higher_order.cond, 3)
    assert not found.written
    assert found.function_id == 3
    assert region(9).name == REGION
