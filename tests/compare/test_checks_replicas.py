"""What replicas share: how replicas are known, where they part, what is left open (CP-25)."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from paritrace.compare.checks_result import Invariant, Outcome
from paritrace.evidence.calls import Call, Kind, Name, Slot, State, StateNames
from paritrace.evidence.distributed import Collective, Group, Mesh, Placement, Replicated
from tests.compare import check_records as r
from tests.compare import rank_records as ranks
from tests.compare.rank_records import Records, across_of, invariants_of, training, value

SHARED = ("replicas.parameters", "replicas.optimizer_state", "replicas.gradients")


def of(*sessions: Records, **options: object) -> dict[str, Invariant]:
    return invariants_of(across_of(dict(enumerate(sessions)), **options))  # type: ignore[arg-type]


def test_cp25_replicas_that_agree_pass_with_their_basis() -> None:
    found = of(training(0), training(1))
    for identity in SHARED:
        assert found[identity].status is Outcome.PASS, found[identity]
        assert found[identity].evidence.ranks == (0, 1)
        assert any("ddp over group world" in fact for fact in found[identity].evidence.facts)
    assert found["replicas.declared"].status is Outcome.PASS
    assert "2 names at 3 boundaries; ranks 0,1 of 2 compared" in found["replicas.parameters"].evidence.facts


@pytest.mark.parametrize("declared", [True, False])
def test_cp25_a_gradient_that_is_not_reduced_is_named_with_its_weight(declared: bool) -> None:
    fault = {
        ("gradient", "head.weight"): 0,
        ("parameter", "head.weight"): 1,
        ("optimizer_state", "head.weight"): 1,
    }
    found = of(training(0, declared=declared), training(1, declared=declared, unlike=fault))
    for identity, step in zip(SHARED, (1, 1, 0), strict=True):
        assert (found[identity].status, found[identity].step) == (Outcome.FAIL, step)
        assert found[identity].evidence.total == 1
        (parting,) = found[identity].evidence.partings
        assert parting.name.partition(":")[0] == "head.weight"
        assert parting.sides == ((0,), (1,))
        assert ("ddp" in parting.basis) is declared


def test_cp25_the_sides_of_a_disagreement_are_told() -> None:
    fault = {("gradient", "body.weight"): 1}
    world = (0, 1, 2, 3)
    found = of(*(training(rank, world=world, unlike=fault if rank == 2 else None) for rank in world))
    (parting,) = found["replicas.gradients"].evidence.partings
    assert (parting.step, parting.moment, parting.sides) == (1, "grads", ((0, 1, 3), (2,)))
    assert found["replicas.gradients"].evidence.facts[0] == (
        "body.weight: ranks 0,1,3 agree; rank 2 differs, from step 1 before the optimizer"
    )


def test_cp25_the_first_step_is_named_whichever_rank_parts_first() -> None:
    late, early = {("parameter", "head.weight"): 2}, {("parameter", "head.weight"): 1}
    world = (0, 1, 2)
    sessions = [training(0, world=world), training(1, world=world, unlike=late), training(2, world=world, unlike=early)]
    (parting,) = of(*sessions)["replicas.parameters"].evidence.partings
    assert (parting.step, parting.sides) == (1, ((0, 1), (2,)))


def test_cp25_a_parameter_that_the_wrapper_left_out_is_said_to_be() -> None:
    def session(rank: int) -> Records:
        fault = {("gradient", "head.weight"): 0}
        made = training(rank, unlike=fault if rank else None)
        mark = Replicated(ranks.WORLD, ("body.weight",), "ddp", left_out=("head.weight",))
        return [mark if isinstance(record, Replicated) else record for record in made]

    found = of(session(0), session(1))["replicas.gradients"]
    assert found.status is Outcome.FAIL
    assert "head.weight was left out of the reduction by its wrapper (ddp)" in found.evidence.facts


@pytest.mark.parametrize("declared", [True, False])
def test_cp25_a_missing_gradient_on_one_rank_is_a_disagreement(declared: bool) -> None:
    lacking = ranks.value("gradient", "body.weight", 0, -1)

    def without(record: object) -> object:
        match record:
            case State() if record.moment == "grads" and record.step == 0:
                return replace(record, names=20, values=(r.NO_GRADIENT, lacking))
            case _:
                return record

    names = r.state_names(20, "gradient", names=ranks.NAMES, kinds=(-1, r.TRAINABLE))
    other = training(1, declared=declared)
    changed = [*other[:1], names, *(without(record) for record in other[1:])]
    found = of(training(0, declared=declared), changed)["replicas.gradients"]  # type: ignore[arg-type]
    assert (found.status, found.evidence.names) == (Outcome.FAIL, ("head.weight",))


def test_cp25_filled_parameters_are_no_replicas_until_declared() -> None:
    """A bias of zeros starts alike on every rank, also where it is a shard."""

    def session(rank: int, *, declared: bool) -> Records:
        made = training(rank, declared=declared, unlike={("parameter", "head.weight"): 1} if rank else None)
        return [
            replace(record, values=(r.ZEROS, record.values[1]))
            if isinstance(record, State) and (record.moment, record.step, record.names) == ("begin", 0, 1)
            else record
            for record in made
        ]

    open_ones = of(*(session(rank, declared=False) for rank in (0, 1)))
    assert open_ones["replicas.parameters"].evidence.names == ()
    assert open_ones["replicas.declared"].status is Outcome.NOT_CHECKABLE
    assert open_ones["replicas.declared"].evidence.names == ("head.weight",)
    found = of(*(session(rank, declared=True) for rank in (0, 1)))
    assert found["replicas.parameters"].evidence.names == ("head.weight",)


def test_cp25_filled_parameters_that_are_alike_once_changed_are_replicas() -> None:
    def session(rank: int) -> Records:
        made = training(rank, declared=False, unlike={("parameter", "head.weight"): 2} if rank else None)
        return [
            replace(record, values=(r.ONES, record.values[1]))
            if isinstance(record, State) and (record.moment, record.step, record.names) == ("begin", 0, 1)
            else record
            for record in made
        ]

    found = of(session(0), session(1))
    assert (found["replicas.parameters"].status, found["replicas.parameters"].step) == (Outcome.FAIL, 2)
    assert found["replicas.declared"].status is Outcome.PASS


def test_cp25_undeclared_parameters_that_start_unlike_are_not_compared() -> None:
    fault = {("parameter", name): 0 for name in ranks.NAMES}
    found = of(training(0, declared=False), training(1, declared=False, unlike=fault))
    assert found["replicas.parameters"].status is Outcome.NOT_CHECKABLE
    assert "2 start unlike" in found["replicas.parameters"].evidence.reason
    assert found["replicas.declared"].evidence.names == ranks.NAMES
    assert found["batches.across_ranks"].status is Outcome.NOT_CHECKABLE


def test_cp25_optimizer_state_on_one_rank_only_is_no_disagreement() -> None:
    sharded = [record for record in training(1) if not (isinstance(record, State) and record.names == ranks.OPTIMIZER)]
    found = of(training(0), sharded)
    assert found["replicas.optimizer_state"].status is Outcome.NOT_CHECKABLE
    assert found["replicas.parameters"].status is Outcome.PASS


def placed(rank: int, *, placements: tuple[str, ...], shape: tuple[int, ...], unlike: bool, groups: bool) -> Records:
    """One rank of a mesh (dp 2, tp 2); every parameter lies as `placements` say."""
    dp, tp = divmod(rank, 2)
    made = training(rank, world=(0, 1, 2, 3), declared=False)
    head: Records = []
    if groups:
        head += [Group(1, "dp", (tp, 2 + tp), "gloo"), Group(2, "tp", (2 * dp, 2 * dp + 1), "gloo")]
    basis = "device_mesh" if groups else "declared"
    head.append(Mesh(0, ("dp", "tp"), (2, 2), (dp, tp), basis, (1, 2) if groups else ()))
    head.append(Placement(r.TRAINABLE, 0, placements, (256,), (128 * tp if placements[1] == "S(0)" else 0,)))
    own = {"S(0)": tp, "R": 0}[placements[1]]
    for place, record in enumerate(made):
        if isinstance(record, State) and record.names == ranks.PARAMETERS:
            parted = (rank == 3 and unlike and record.step == 2,)
            values = tuple(value(name, record.step, own, *parted) for name in ranks.NAMES)
            made[place] = replace(record, values=values)
    return [*made[:20], *head, *made[20:]]


@pytest.mark.parametrize("groups", [True, False])
@pytest.mark.parametrize("unlike", [True, False])
@pytest.mark.parametrize("shard", ["S(0)", "R"])
def test_cp25_replicas_of_one_shard_are_compared_and_other_shards_are_not(
    shard: str, unlike: bool, groups: bool
) -> None:
    sessions = [placed(rank, placements=("R", shard), shape=(), unlike=unlike, groups=groups) for rank in range(4)]
    found = of(*sessions)["replicas.parameters"]
    assert found.status is (Outcome.FAIL if unlike else Outcome.PASS), found
    if unlike:
        assert found.step == 2
        assert found.evidence.partings[0].sides == (((1,), (3,)) if shard == "S(0)" else ((0, 1, 2), (3,)))
    assert any("mesh dimension dp" in fact for fact in found.evidence.facts)


def test_cp25_shards_alone_are_compared_with_nothing() -> None:
    sessions = [placed(rank, placements=("S(0)", "S(0)"), shape=(), unlike=True, groups=True) for rank in range(4)]
    found = of(*sessions)
    assert found["replicas.parameters"].status is Outcome.NOT_CHECKABLE
    assert found["replicas.declared"].status is Outcome.PASS


def test_cp25_parameters_of_other_shapes_are_not_compared() -> None:
    def staged(rank: int) -> Records:
        made = training(rank, declared=False)
        other = Kind(r.TRAINABLE, "float32", (7,), (1,), "strided", "cpu", True, 7, 28)
        return [other if rank and isinstance(record, Kind) and record.id == r.TRAINABLE else record for record in made]

    found = of(staged(0), staged(1))
    assert found["replicas.parameters"].status is Outcome.NOT_CHECKABLE
    assert not [one for one in found.values() if one.status is Outcome.FAIL]


def test_cp25_buffers_that_part_are_told_and_not_called_wrong() -> None:
    def session(rank: int) -> Records:
        made = training(rank)
        for step in range(3):
            at = made.index(r.step_mark(step))
            made.insert(at, State(step, 0, "begin", ranks.BUFFERS, (value("mean", rank if step else 0, step),)))
        return made

    found = of(session(0), session(1))["replicas.buffers"]
    assert (found.status, found.step, found.evidence.names) == (Outcome.NOT_CHECKABLE, 1, ("norm.running_mean",))


def test_cp25_a_value_that_was_not_read_agrees_with_nothing() -> None:
    made = training(1)
    gap = [
        replace(record, values=(r.NO_GRADIENT, record.values[1]))
        if isinstance(record, State) and record.names == ranks.PARAMETERS
        else record
        for record in made
    ]
    found = of(training(0), gap)["replicas.parameters"]
    assert any("not read at some boundary: head.weight" in fact for fact in found.evidence.facts)


def test_cp25_a_name_that_comes_twice_in_a_row_is_compared_once() -> None:
    def doubled(rank: int) -> Records:
        made = training(rank)
        return [
            StateNames(record.id, record.group, ("head.weight", "head.weight"), record.kinds)
            if isinstance(record, StateNames) and record.id == ranks.PARAMETERS
            else record
            for record in made
        ]

    assert of(doubled(0), doubled(1))["replicas.parameters"].status is Outcome.PASS


FAULTS = st.dictionaries(
    st.tuples(
        st.integers(0, 3), st.sampled_from(["parameter", "gradient", "optimizer_state"]), st.sampled_from(ranks.NAMES)
    ),
    st.integers(0, 2),
    max_size=6,
)


def faulty(faults: dict[tuple[int, str, str], int]) -> dict[int, Records]:
    world = tuple(range(4))
    return {
        rank: training(
            rank, world=world, unlike={(what, name): step for (who, what, name), step in faults.items() if who == rank}
        )
        for rank in world
    }


@settings(max_examples=40, deadline=None)
@given(FAULTS, st.randoms(use_true_random=False))
def test_cp25_the_order_of_sessions_never_matters(
    faults: dict[tuple[int, str, str], int], shuffle: random.Random
) -> None:
    sessions = faulty(faults)
    order = list(sessions)
    shuffle.shuffle(order)
    assert invariants_of(across_of(sessions, order=order)) == invariants_of(across_of(sessions))


@settings(max_examples=40, deadline=None)
@given(FAULTS, st.sets(st.integers(0, 3), min_size=1, max_size=2))
def test_cp25_a_missing_rank_never_makes_a_pass_or_another_failure(
    faults: dict[tuple[int, str, str], int], gone: set[int]
) -> None:
    sessions = faulty(faults)
    whole = invariants_of(across_of(sessions))
    left = {rank: records for rank, records in sessions.items() if rank not in gone}
    found = invariants_of(across_of(left, world_size=4))
    for identity, invariant in found.items():
        if invariant.status is Outcome.PASS:
            assert whole[identity].status in (Outcome.PASS, Outcome.FAIL)
            assert not set(invariant.evidence.ranks) & gone
        if invariant.status is Outcome.FAIL:
            assert whole[identity].status is Outcome.FAIL


def by_hand(
    rank: int,
    *,
    unlike: dict[tuple[str, str], int] | None = None,
    dim: str = "dp",
    reduce: str = "sum",
    own: bool = True,
) -> Records:
    """A rank that all-reduces the gradient of head.weight by itself; with `own` as its leaf got it, else another."""
    records = training(rank, declared=False, unlike=unlike)
    at = next(place for place, record in enumerate(records) if isinstance(record, Group)) + 1
    gradient = Slot(1, r.FLOAT32, "a" * 16)
    reduced = replace(gradient, source=(100 if own else 98, 0))
    extra: Records = [
        Mesh(0, (dim,), (2,), (rank,), "device_mesh", (ranks.WORLD,)),
        Name(50, "AccumulateGrad:head.weight"),
        Call(100, 101, -1, 1, 10, 10, 0, 1, 1, 0, -1, 50, -1, 0, 1, (gradient,), (gradient,)),
        Collective(102, ranks.WORLD, "all_reduce", 0, reduce),
        Call(102, 103, -1, 1, 10, 10, 0, 1, 1, 0, -1, -1, -1, 0, 1, (reduced,), ()),
    ]
    return [*records[:at], *extra, *records[at:]]


UNLIKE = {("parameter", "head.weight"): 0}


def test_cp25_a_broadcast_that_was_forgotten_is_named_where_gradients_are_reduced_by_hand() -> None:
    found = of(by_hand(0, unlike=UNLIKE), by_hand(1, unlike=UNLIKE))["replicas.parameters"]
    assert (found.status, found.step, found.evidence.total) == (Outcome.FAIL, 0, 1)
    (parting,) = found.evidence.partings
    assert parting.name == "head.weight"
    assert parting.basis == "its gradient is all-reduced along mesh dimension dp"
    alike = of(by_hand(0), by_hand(1))["replicas.parameters"]
    assert alike.status is Outcome.PASS


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({"dim": "tp"}, {"dim": "tp"}),  # parts of one parameter lie on such ranks
        ({"reduce": "max"}, {"reduce": "max"}),
        ({"own": False}, {"own": False}),
        ({}, {"own": False}),  # one rank alone reduces it
    ],
)
def test_cp25_what_no_data_parallel_reduction_of_every_rank_shows_stays_open(
    ours: dict[str, str | bool], theirs: dict[str, str | bool]
) -> None:
    found = of(by_hand(0, unlike=UNLIKE, **ours), by_hand(1, unlike=UNLIKE, **theirs))  # type: ignore[arg-type]
    assert found["replicas.parameters"].status is not Outcome.FAIL
    assert found["replicas.declared"].status is Outcome.NOT_CHECKABLE
