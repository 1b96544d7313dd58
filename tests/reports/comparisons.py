"""Comparisons that the tests of the reports show: constructed records, as the engine would return them."""

from msgspec.structs import replace

from paritrace.compare.result import (
    FORMAT,
    LADDER,
    VERSION,
    Change,
    Comparison,
    Counts,
    Difference,
    DifferenceClass,
    Finding,
    Group,
    Mark,
    OneSided,
    Outside,
    RunRef,
    Settled,
    SideCoverage,
    SlotDifference,
    UndeterminedPlace,
    Unpaired,
)

COMPLETE = SideCoverage(
    steps_seen=(0, 1, 2), expected_steps=3, complete=True, status="completed", gaps={}, bytes_lost=0, not_captured=()
)


def ladder(**marks: Mark) -> dict[str, Mark]:
    """Returns a ladder that agrees, but for `marks` (underscores for spaces)."""
    given = {name.replace("_", " "): mark for name, mark in marks.items()}
    return {rung: given.get(rung, Mark.AGREES) for rung in LADDER}


def agreeing() -> Comparison:
    """Two runs of which every recorded call agrees."""
    return Comparison(
        format=FORMAT,
        version=VERSION,
        baseline=RunRef(run_id="run-a", digest="a" * 64, path="A"),
        candidate=RunRef(run_id="run-b", digest="b" * 64, path="B"),
        verdict="not_evaluated",
        ranks_compared=(0,),
        ranks_missing=(),
        steps_compared=(0, 1, 2),
        levels_compared=("module", "op"),
        counts=Counts(6120, 6120, 6120, 6120, 0, 0, 0, 0, 0),
        undetermined_by_reason={"baseline": {}, "candidate": {}},
        undetermined_by_place=(),
        pairs_by_basis={"scope": 120, "equal_sequence": 6000},
        findings=(),
        ladder=ladder(),
        ladder_step=0,
        changed=(),
        origins=(),
        first_difference=None,
        outside=(),
        recorded_on_one_side=(),
        settled=None,
        coverage={"baseline": COMPLETE, "candidate": COMPLETE},
        limits=(),
        settings={},
        reports={},
        schemes={"bits": "xxh3-64"},
    )


def difference() -> Difference:
    """The call at which `parted` runs part."""
    return Difference(
        rank=0,
        step=0,
        microbatch=0,
        phase="forward",
        level="op",
        function="aten._softmax.default",
        file="model/attention.py",
        line=41,
        module="encoder.layers.2.self_attn",
        slot="out[0]",
        difference_class=DifferenceClass.NARROWER_DTYPE,
        group=Group.ORIGINATES,
        baseline_record_id=212,
        candidate_record_id=214,
        undetermined_before=0,
        baseline_site="model/attention.py:41",
        candidate_site="model/attention.py:41",
        baseline_source="weights = scores.softmax(dim=-1)",
        candidate_source="weights = scores.to(torch.bfloat16).softmax(dim=-1).to(scores.dtype)",
        slots=(
            SlotDifference(
                slot="out[0]",
                difference_class=DifferenceClass.NARROWER_DTYPE,
                baseline="float32[4, 8, 16, 16]",
                candidate="float32[4, 8, 16, 16]",
                relative_error=0.00213,
                bias=-1.2e-05,
                max_ulp=31744,
                num_samples_differing=61,
                byte_ranges=((0, 16384), (16384, 32768)),
                note="every candidate value fits bfloat16",
            ),
        ),
        next_to_see=("reads it: aten.bmm.default at model/attention.py:43",),
    )


def parted() -> Comparison:
    """A softmax in bfloat16 on the candidate's side: one finding, two operators more, a changed source."""
    place = difference()
    return replace(
        agreeing(),
        counts=Counts(6120, 6126, 6114, 5102, 1012, 0, 6, 12, 2),
        undetermined_by_reason={
            "baseline": {"unequal_between_anchors": 6},
            "candidate": {"unequal_between_anchors": 12},
        },
        undetermined_by_place=(
            UndeterminedPlace(
                side="candidate",
                reason=Unpaired.UNEQUAL_BETWEEN_ANCHORS,
                step=0,
                phase="forward",
                module="encoder.layers.2.self_attn",
                file="model/attention.py",
                count=2,
            ),
        ),
        findings=(
            Finding(
                id="F1",
                sentence="The runs part at step 0, forward, in encoder.layers.2.self_attn (rank 0).",
                strength="bits only",
                place=place,
                consequences=1011,
            ),
            Finding(
                id="F2",
                sentence="They part again at step 0, backward.",
                strength="bits only",
                place=replace(place, phase="backward", module="encoder.layers.0.linear1"),
            ),
        ),
        ladder=ladder(code=Mark.BEYOND, forward=Mark.BEYOND, loss=Mark.BEYOND, reduced_grads=Mark.UNDETERMINED),
        changed=(
            Change(kind="code", name="model/attention.py", baseline="3f2a91c0", candidate="77b0c1d4"),
            Change(kind="argv", name="--lr", baseline="0.01", candidate="0.01"),
        ),
        origins=(place,),
        first_difference=place,
        recorded_on_one_side=(
            OneSided(
                side="candidate",
                rank=0,
                step=0,
                module="encoder.layers.2.self_attn",
                function="aten._to_copy.default",
                file="model/attention.py",
                line=41,
                count=2,
                record_id=213,
                after_pair=(211, 212),
                before_pair=(212, 214),
            ),
        ),
        coverage={
            "baseline": COMPLETE,
            "candidate": replace(
                COMPLETE,
                expected_steps=None,
                complete=False,
                status="interrupted; cause unknown",
                gaps={"thread_not_covered": 2},
                not_captured=("lr_scheduler", "sampler position"),
            ),
        },
    )


def outside_parameter() -> Comparison:
    """One element of one weight changed before the first step."""
    place = replace(
        difference(),
        group=Group.OUTSIDE,
        function="torch.nn.modules.linear.Linear",
        level="module",
        cause="parameter encoder.layers.0.linear1.weight differed at the begin of step 0",
        difference_class=DifferenceClass.VALUES,
        slots=(),
    )
    sentence = "The runs part outside the calls: parameter encoder.layers.0.linear1.weight differs at step 0 (rank 0)."
    return replace(
        agreeing(),
        counts=Counts(600, 600, 600, 12, 588, 0, 0, 0, 0),
        levels_compared=("module",),
        findings=(Finding(id="F1", sentence=sentence, strength="bits only", place=place, consequences=587),),
        ladder=ladder(weights=Mark.BEYOND, forward=Mark.BEYOND, loss=Mark.BEYOND),
        origins=(place,),
        first_difference=place,
        outside=(
            Outside(
                rank=0,
                step=0,
                moment="begin",
                group="parameter",
                name="encoder.layers.0.linear1.weight",
                baseline="00c1d2e3f4a5b6c7",
                candidate="19c1d2e3f4a5b6c7",
            ),
        ),
    )


def unnamed() -> Comparison:
    """A difference that cannot be placed (CP-30)."""
    equal = replace(difference(), function="aten.addmm.default", line=30, slots=())
    return replace(
        agreeing(),
        counts=Counts(900, 905, 820, 400, 420, 0, 80, 85, 0),
        ladder=ladder(forward=Mark.UNDETERMINED, loss=Mark.BEYOND),
        settled=Settled(
            last_equal=equal,
            first_different=difference(),
            between_baseline=80,
            between_candidate=85,
            why={"no_anchor": 120, "unequal_between_anchors": 45},
            would_settle=("capture both at level op for step 0", "give --ignore for the renamed modules"),
        ),
    )
