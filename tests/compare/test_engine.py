"""Whole comparisons of built runs: what is named first, what follows, what is not known (CP-8, CP-8a, CP-21, CP-30)."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from paritrace.compare.result import Basis, DifferenceClass, Group, Mark, Status
from paritrace.compare.settings import Settings
from paritrace.evidence.calls import Flag, Level, OriginKind, Phase
from paritrace.testing.tables import Array, Named, Out, RunTable, Value, batch, parameter
from tests.compare.runs import SOURCE, Change, compared, numbers, training


def test_identical_runs_agree_everywhere(tmp_path: Path) -> None:
    found = compared(tmp_path, training(), training())
    result = found.result
    assert result.counts.paired == result.counts.calls_baseline == result.counts.ok
    assert result.first_difference is None
    assert (result.findings, result.origins, result.outside, result.changed) == ((), (), (), ())
    assert {row.status for row in found.rows} == {Status.OK}
    marks = {rung: mark for rung, mark in result.ladder.items() if rung not in ("code", "config", "rng")}
    assert set(marks.values()) == {Mark.AGREES}


def inserted(factor: float) -> Change:
    def insert(table: RunTable, made: Out) -> Out:
        assert isinstance(made.value, Value)
        return table.op("mul", made, out=made.value.array * np.float32(factor), line=4)

    return insert


def test_an_inserted_operator_is_named_by_place(tmp_path: Path) -> None:
    result = compared(tmp_path, training(), training(hidden=inserted(1.001))).result
    first = result.first_difference
    assert first is not None
    assert first.group is Group.ORIGINATES
    assert (first.region, first.region_calls) == (True, (0, 1))
    assert (first.step, first.phase, first.module, first.line) == (0, "forward", "model", 4)
    alone = [found for found in result.recorded_on_one_side if found.step == 0]
    assert [(found.side, found.function, found.line) for found in alone] == [("candidate", "mul", 4)]
    assert alone[0].after_pair != (-1, -1)
    assert result.findings[0].strength == "bits only"


def test_cp3c_what_a_writer_dropped_is_counted_and_nothing_is_claimed_of_one_side(tmp_path: Path) -> None:
    """A writer that must drop a batch cannot write of it where it happened: the end of the journal holds the count."""
    dropping = training(steps=1)
    dropping.gaps = {"dropped_queue_full": 7}
    result = compared(tmp_path, dropping, training(steps=2, hidden=inserted(1.001))).result
    assert result.coverage["baseline"].gaps == {"dropped_queue_full": 7}
    assert not result.coverage["baseline"].complete
    assert set(result.undetermined_by_reason["candidate"]) == {"dropped", "unequal_between_anchors"}
    assert result.recorded_on_one_side == ()  # one side is known not to have recorded all (CP-21)


def test_an_inserted_no_op_originates_nothing(tmp_path: Path) -> None:
    result = compared(tmp_path, training(), training(hidden=inserted(1.0))).result
    assert result.first_difference is None
    assert result.origins == ()
    assert result.counts.different == 0
    assert result.counts.undetermined_candidate == 2
    assert result.ladder["forward"] is Mark.AGREES


def test_a_call_with_equal_inputs_and_other_outputs_originates_inside_its_module(tmp_path: Path) -> None:
    found = compared(tmp_path, training(), training(scale=2.002))
    first = found.result.first_difference
    assert first is not None
    assert (first.group, first.function, first.region) == (Group.ORIGINATES, "scaled_tanh", False)
    assert first.slots[0].difference_class is DifferenceClass.CONSTANT_SCALE
    groups = Counter(row.group for row in found.rows if row.step == 0 and row.side == "baseline" and row.group)
    assert groups[Group.CONTAINS] == 1  # the module around it
    assert groups[Group.ORIGINATES] == 1
    assert found.result.findings[0].consequences == found.result.counts.different - 1


def unsized(*payloads: int) -> RunTable:
    """Two calls in one module, whose NaNs differ by payload alone: of either only fingerprints say that it differs."""
    table = RunTable(source=SOURCE)
    data = numbers(3)
    model = table.enter("model", "Model")
    for line, payload in enumerate(payloads, start=1):
        nan = np.full(96, 0x7FC00000 + payload, np.uint32).view(np.float32)
        table.op(f"nan_{line}", batch(data), out=nan, line=line)
    model.leave(batch(data), out=data * np.float32(1 + 1e-3 * sum(payloads)), line=9)
    table.end_step()
    return table


def test_cp8_the_module_around_shows_the_size_of_what_it_goes_back_to_alone(tmp_path: Path) -> None:
    result = compared(tmp_path, unsized(0, 0), unsized(1, 1)).result
    first, second = (found.place for found in result.findings)
    assert [slot.slot for slot in first.slots] == ["out[0]", "model out[0]"]
    assert first.slots[1].relative_error is not None
    assert [slot.slot for slot in second.slots] == ["out[0]"]


def helper(order: tuple[int, ...], *, scale: float) -> RunTable:
    """One line that is called for several inputs, as a helper of q, k and v is, in some order."""
    table = RunTable(source=SOURCE)
    model = table.enter("model", "Model")
    for seed in order:
        data = numbers(seed)
        table.op("project", batch(data, name="args[0]"), out=data * np.float32(scale), line=3)
    model.leave(batch(numbers(9)), out=numbers(9), line=9)
    table.end_step()
    return table


@pytest.mark.parametrize("scale", [1.0, 1.5])
def test_cp4_what_calls_give_never_undoes_what_their_inputs_identify(tmp_path: Path, scale: float) -> None:
    found = compared(tmp_path, helper((1, 2, 3), scale=1.0), helper((3, 1, 2), scale=scale))
    rows = [row for row in found.rows if row.side == "baseline" and row.function == "project"]
    theirs = [row.record_id for row in found.rows if row.side == "candidate" and row.function == "project"]
    assert [row.partner for row in rows] == [theirs[1], theirs[2], theirs[0]]
    assert {row.basis for row in rows} == {Basis.INPUT_IDENTITY}


def test_a_weight_that_differs_at_the_start_is_outside_by_name(tmp_path: Path) -> None:
    weight = numbers(1)
    weight[5] += 1e-3
    result = compared(tmp_path, training(), training(weight=weight)).result
    first = result.first_difference
    assert first is not None
    assert first.group is Group.OUTSIDE
    assert "parameter fc.weight" in first.cause
    assert [(state.step, state.group, state.name) for state in result.outside] == [(0, "parameter", "fc.weight")]
    assert [found.group for found in result.origins] == [Group.OUTSIDE]
    assert result.ladder["weights"] is Mark.BEYOND
    assert result.ladder["data"] is Mark.AGREES


def test_a_late_fault_names_its_step(tmp_path: Path) -> None:
    result = compared(tmp_path, training(steps=4), training(steps=4, late=2)).result
    first = result.first_difference
    assert first is not None
    assert (first.step, first.function, result.ladder_step) == (2, "scaled_tanh", 2)


def test_another_batch_is_outside(tmp_path: Path) -> None:
    tables = []
    for seed in (1, 2):
        table = RunTable()
        data = numbers(seed)
        table.state("batch", {"args[0]": data}, moment="batch")
        table.op("neg", batch(data), out=-data)
        table.end_step(backwards=0)
        tables.append(table)
    result = compared(tmp_path, *tables).result
    assert [(state.group, state.name) for state in result.outside] == [("batch", "args[0]")]
    assert result.first_difference is not None
    assert result.first_difference.group is Group.OUTSIDE
    assert result.ladder["backward"] is Mark.NOT_REACHED


def test_inputs_from_other_producers_are_rewired(tmp_path: Path) -> None:
    tables = []
    for swapped in (False, True):
        table = RunTable()
        q = table.op("q", batch(numbers(1)), out=numbers(2))
        k = table.op("k", batch(numbers(1)), out=numbers(3))
        taken = (k, q) if swapped else (q, k)
        table.op("sub", *taken, out=numbers(4 + swapped))
        tables.append(table)
    first = compared(tmp_path, *tables).result.first_difference
    assert first is not None
    assert first.group is Group.REWIRED
    assert "q" in first.cause
    assert "k" in first.cause


def test_a_differing_input_that_nothing_recorded_wrote_is_outside(tmp_path: Path) -> None:
    tables = []
    for changed in (0.0, 1.0):
        table = RunTable()
        made = table.op("a", batch(numbers(1)), out=numbers(2))
        written = Out(made.record, 0, Value(numbers(2) + np.float32(changed)))
        table.op("b", written, out=numbers(3) + np.float32(changed))
        tables.append(table)
    first = compared(tmp_path, *tables).result.first_difference
    assert first is not None
    assert first.group is Group.OUTSIDE
    assert "written by nothing recorded" in first.cause


def test_a_generator_that_drew_more_on_one_side_is_after_unaligned(tmp_path: Path) -> None:
    tables = []
    for extra in (False, True):
        table = RunTable()
        if extra:
            table.op("rand", Named(OriginKind.RNG, "cpu", Value(numbers(50, 4))), out=numbers(6), line=2)
        state = Named(OriginKind.RNG, "cpu", Value(numbers(50 + extra, 4)))
        table.op("dropout", batch(numbers(1)), state, out=numbers(7 + extra), line=3)
        tables.append(table)
    result = compared(tmp_path, *tables).result
    groups = [row.group for row in compared(tmp_path / "again", *tables).rows if row.function == "dropout"]
    assert groups == [Group.AFTER_UNALIGNED] * 2
    assert result.outside == ()


def test_a_module_that_shows_only_itself_originates(tmp_path: Path) -> None:
    tables = []
    for seed in (3, 4):
        table = RunTable()
        module = table.enter("model.norm", "Norm")
        module.leave(batch(numbers(1)), out=numbers(seed))
        tables.append(table)
    first = compared(tmp_path, *tables).result.first_difference
    assert first is not None
    assert (first.group, first.level, first.module) == (Group.ORIGINATES, "module", "model.norm")


def test_ranks_of_one_side_only_are_missing(tmp_path: Path) -> None:
    from paritrace.compare.engine import compare
    from paritrace.runs.reading import open_run

    for rank in (0, 1):
        training().write(tmp_path / "a", rank=rank, world_size=2)
    training().write(tmp_path / "b", rank=0, world_size=2)
    result = compare(open_run(tmp_path / "a"), open_run(tmp_path / "b")).result
    assert (result.ranks_compared, result.ranks_missing) == ((0,), (1,))


def test_steps_ignored_names_and_prefixes_are_settings(tmp_path: Path) -> None:
    settings = Settings(steps=(1, 2), ignore=("scaled_*",), strip_prefix=("module.",))
    found = compared(tmp_path, training(), training(scale=2.002), settings=settings)
    assert {row.step for row in found.rows} == {1}
    assert "scaled_tanh" not in {row.function for row in found.rows}
    assert found.result.settings == {"steps": "1:2", "ranks": "all", "ignore": "scaled_*", "strip_prefix": "module."}


def test_a_wrapper_of_one_side_is_seen_through_by_its_prefix(tmp_path: Path) -> None:
    tables = []
    for wrapped in (False, True):
        table = RunTable(source=SOURCE)
        prefix = "module." if wrapped else ""
        outer = table.enter("", "DistributedDataParallel") if wrapped else None
        model = table.enter(prefix.rstrip("."), "Model")
        layer = table.enter(f"{prefix}fc", "Linear")
        weight = parameter(f"{prefix}fc.weight", numbers(2))
        made = table.op("mm", batch(numbers(1)), weight, out=numbers(3))
        layer.leave(batch(numbers(1)), weight, out=made)
        model.leave(batch(numbers(1)), out=made)
        if outer is not None:
            outer.leave(batch(numbers(1)), out=made)
        tables.append(table)
    result = compared(tmp_path, *tables, settings=Settings(strip_prefix=("module.",))).result
    assert (result.counts.paired, result.counts.undetermined_candidate) == (3, 1)
    assert result.counts.different == 0


def test_cp6_what_torch_calls_the_inside_of_its_wrappers_is_left_out_anywhere() -> None:
    settings = Settings(strip_prefix=("module.", "_orig_mod."))
    names = ("module._orig_mod.fc.weight", "layers.0._orig_mod.fc.weight:exp_avg", "layers.0._orig_mod", "_orig_mod")
    assert [settings.spelled(name) for name in names] == ["fc.weight", "layers.0.fc.weight:exp_avg", "layers.0", ""]
    kept = ("encoder.module.fc", "my_orig_mod.fc", "a.orig_mod.fc", "")  # a model's own names, and other ones
    assert [settings.spelled(name) for name in kept] == list(kept)


@pytest.mark.parametrize(("shared", "paired"), [(numbers(5), 1), (np.zeros_like(numbers(5)), 0)])
def test_cp3_degenerate_inputs_are_no_anchors(tmp_path: Path, shared: Array, paired: int) -> None:
    """Masks, constants and zeros are alike without being one: an input that tells nothing identifies nothing."""
    tables: list[RunTable] = []
    for inputs in ([numbers(1), shared], [shared, numbers(8), numbers(9)]):
        table = RunTable(source=SOURCE)
        for data in inputs:
            table.op("mul", batch(data, name=""), out=data + numbers(2), line=3)
        tables.append(table)
    result = compared(tmp_path, *tables).result
    assert result.counts.paired == paired
    assert result.pairs_by_basis.get("input_anchor", 0) == paired


def test_cp23_beside_the_first_difference_stands_what_to_look_at_next(tmp_path: Path) -> None:
    tables: list[RunTable] = []
    for factor in (1.0, 1.5):
        table = RunTable(source=SOURCE)
        model = table.enter("model", "Model")
        made = table.op("mul", batch(numbers(1)), out=numbers(2), line=3)
        added = table.op("add", made, out=numbers(3) * np.float32(factor), line=4)
        last = table.op("relu", added, out=numbers(4) * np.float32(factor), line=5)
        model.leave(batch(numbers(1)), out=last)
        table.end_step()
        tables.append(table)
    first = compared(tmp_path, *tables).result.first_difference
    assert first is not None
    assert first.function == "add"
    told = [(text.split()[0], text.split()[1]) for text in first.next_to_see]
    assert told == [("caller", "Model"), ("writer", "mul"), ("reader", "relu")]


def test_every_comparison_states_its_limits(tmp_path: Path) -> None:
    result = compared(tmp_path, training(steps=1), training(steps=1)).result
    assert len({limit.code for limit in result.limits}) == len(result.limits) >= 8
    assert result.verdict == "not_evaluated"


def test_a_level_that_one_side_did_not_record_is_not_recorded(tmp_path: Path) -> None:
    bare = RunTable()
    module = bare.enter("fc", "Linear")
    module.leave(batch(numbers(1)), out=numbers(2))
    full = RunTable()
    module = full.enter("fc", "Linear")
    full.op("mm", batch(numbers(1)), out=numbers(2))
    module.leave(batch(numbers(1)), out=numbers(2))
    result = compared(tmp_path, bare, full).result
    assert result.undetermined_by_reason == {"baseline": {}, "candidate": {"not_recorded": 1}}
    assert result.recorded_on_one_side == ()


def test_only_a_gradient_norm_may_differ_and_is_then_the_first(tmp_path: Path) -> None:
    """A-13: the loss agrees, the gradient norm does not; a step agrees figure by figure only."""
    tables = []
    for norm in (4.74, 1.63):
        table = RunTable()
        table.loss(1.4401)
        table.phase = Phase.BACKWARD
        table.end_step(grad_norm=norm)
        tables.append(table)
    result = compared(tmp_path, *tables).result
    assert result.ladder["loss"] is Mark.AGREES
    assert result.ladder["grad norm"] is Mark.BEYOND
    assert result.first_difference is not None
    assert result.first_difference.slot == "grad_norm"
    assert result.settled is not None
    assert "--steps 0:1" in result.settled.would_settle[0]


def test_code_between_modules_that_was_not_recorded_is_the_enclosing_modules(tmp_path: Path) -> None:
    """At level module alone, what lies between two modules is code of the module around them, not the outside."""
    unseen = OriginKind.UNKNOWN
    tables = []
    for factor in (1.0, 1.5):
        table = RunTable(levels=(Level.MODULE,))
        block = table.enter("block", "Block")
        first = table.enter("block.first", "Linear")
        made = first.leave(batch(numbers(1)), out=numbers(2))
        second = table.enter("block.second", "Linear")
        between = Named(unseen, "", Value(numbers(2) * np.float32(factor)))
        made = second.leave(between, out=numbers(3) * np.float32(factor))
        block.leave(batch(numbers(1)), out=made)
        tables.append(table)
    found = compared(tmp_path, *tables)
    first_difference = found.result.first_difference
    assert first_difference is not None
    assert (first_difference.group, first_difference.module) == (Group.ORIGINATES, "block")
    groups = {row.module: row.group for row in found.rows if row.group is not None}
    assert groups["block.second"] is Group.PROPAGATES


def test_an_unrecorded_source_at_the_root_is_undetermined(tmp_path: Path) -> None:
    tables = []
    for seed in (1, 2):
        table = RunTable(levels=(Level.MODULE,))
        table.enter("m", "M").leave(Named(OriginKind.UNKNOWN, "", Value(numbers(seed))), out=numbers(seed + 5))
        tables.append(table)
    result = compared(tmp_path, *tables).result
    assert result.first_difference is not None
    assert result.first_difference.group is Group.UNDETERMINED
    assert result.settled is not None
    assert "--level op" in result.settled.would_settle[0]


def test_another_view_of_the_same_tensor_is_the_stretch_that_took_it(tmp_path: Path) -> None:
    """Readers of a view name what made the tensor; the view in between is what differs."""
    tables = []
    for taken, name in ((slice(0, 48), "split"), (slice(0, 96, 2), "slice")):
        table = RunTable()
        made = table.op("mm", batch(numbers(1)), out=numbers(2), line=1)
        view = np.ascontiguousarray(numbers(2)[taken])
        table.op(name, made, out=view, line=2, flags=Flag.VIEW)
        table.op("mul", Out(made.record, 0, Value(view)), out=view * np.float32(3), line=3)
        tables.append(table)
    first = compared(tmp_path, *tables).result.first_difference
    assert first is not None
    assert (first.group, first.region, first.line) == (Group.ORIGINATES, True, 2)


def test_an_input_that_cannot_be_compared_is_followed_upstream(tmp_path: Path) -> None:
    tables = []
    for name, array in (("cumsum", numbers(2, 4, 8)), ("arange", np.asfortranarray(numbers(3, 4, 8)))):
        table = RunTable(levels=(Level.OP,))
        made = table.op(name, batch(numbers(1)), out=array, line=2)
        shifted = table.op("unsqueeze", made, out=array[None], line=3)
        table.op("mul", shifted, out=numbers(5) if name == "cumsum" else numbers(6), line=4)
        tables.append(table)
    first = compared(tmp_path, *tables).result.first_difference
    assert first is not None
    assert (first.group, first.region, first.line) == (Group.ORIGINATES, True, 2)


def test_a_parameter_of_one_side_only_is_a_change(tmp_path: Path) -> None:
    tables = []
    for names in (("a", "tied"), ("a",)):
        table = RunTable()
        table.state("parameter", {name: numbers(1) for name in names})
        table.end_step()
        tables.append(table)
    changed = compared(tmp_path, *tables).result.changed
    assert [(c.kind, c.name, c.baseline, c.candidate) for c in changed] == [
        ("config", "parameter tied", "present", "absent")
    ]


def test_cp6_names_that_are_read_alike_are_no_change(tmp_path: Path) -> None:
    tables = []
    for name in ("fc.weight", "_orig_mod.fc.weight"):
        table = RunTable()
        table.state("parameter", {name: numbers(1)})
        table.end_step()
        tables.append(table)
    assert len(compared(tmp_path / "as-is", *tables).result.changed) == 2
    read = compared(tmp_path / "read", *tables, settings=Settings(strip_prefix=("_orig_mod.",))).result
    assert read.changed == ()


def test_swapping_the_runs_mirrors_pairs_and_places(tmp_path: Path) -> None:
    there = compared(tmp_path / "there", training(), training(hidden=inserted(1.001)))
    back = compared(tmp_path / "back", training(hidden=inserted(1.001)), training())
    paired = {(row.record_id, row.partner, row.basis) for row in there.rows if row.side == "baseline"}
    mirrored = {(row.partner, row.record_id, row.basis) for row in back.rows if row.side == "baseline"}
    assert {p for p in paired if p[1] >= 0} == {p for p in mirrored if p[0] >= 0}
    ours, theirs = there.result.first_difference, back.result.first_difference
    assert ours is not None
    assert theirs is not None
    assert ours.region_calls == theirs.region_calls[::-1]
    assert (ours.line, ours.module, ours.group) == (theirs.line, theirs.module, theirs.group)
