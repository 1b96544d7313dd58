"""The scorer's rules: what counts as exact, adjacent, missed, and as a claim (CP-18)."""

import msgspec
import pytest

from benchmarks.faults.case import Answer, Control, Expected, ExpectedCheck, Fault, Variant
from benchmarks.faults.judging import Sources, judge_check, judge_control, judge_control_check, judge_fault
from paritrace.compare.checks_result import FORMAT, VERSION, Checked, Evidence, Invariant
from paritrace.compare.checks_result import Outcome as Held
from paritrace.compare.result import Comparison, Difference, DifferenceClass, Group, OneSided, Outside
from tests.reports.comparisons import agreeing

TEXT = "a\nb\nc\nd  # PLANT\ne\nf\n" + "g\n" * 20
SOURCES = Sources(baseline={"model.py": TEXT.replace("# PLANT", "")}, candidate={"model.py": TEXT})
PLANT = Fault(
    name="x",
    mechanism="",
    candidate=Variant(),
    expected=(Expected(groups=("originates",), file="model.py", at="# PLANT", module="blocks.0.attention"),),
)


def difference(**changes: object) -> Difference:
    found = Difference(
        rank=0,
        step=0,
        microbatch=0,
        phase="forward",
        level="op",
        function="aten.mul.Tensor",
        file="model.py",
        line=4,
        module="blocks.0.attention",
        slot="out[0]",
        difference_class=DifferenceClass.BITS_ONLY,
        group=Group.ORIGINATES,
        baseline_record_id=1,
        candidate_record_id=1,
        undetermined_before=0,
    )
    return msgspec.structs.replace(found, **changes)


def result(first: Difference | None, **changes: object) -> Comparison:
    origins = () if first is None else (first,)
    counts = msgspec.structs.replace(agreeing().counts, different=0 if first is None else 1)
    empty = {"outside": (), "recorded_on_one_side": (), "settled": None, "counts": counts}
    return msgspec.structs.replace(agreeing(), first_difference=first, origins=origins, **{**empty, **changes})


@pytest.mark.parametrize(
    ("changes", "answer"),
    [
        ({}, Answer.EXACT),
        ({"line": 6}, Answer.ADJACENT),
        ({"line": 20}, Answer.MISSED),
        ({"line": 20, "region": True, "candidate_site": "model.py:2-5"}, Answer.EXACT),
        ({"file": "train.py"}, Answer.MISSED),
        ({"step": 1}, Answer.MISSED),
        ({"module": "blocks.1.attention"}, Answer.MISSED),
        ({"module": "blocks.0.attention.query"}, Answer.EXACT),
        ({"group": Group.PROPAGATES}, Answer.MISSED),
        ({"group": Group.UNDETERMINED}, Answer.UNDETERMINED),
        ({"group": Group.UNDETERMINED, "line": 20}, Answer.MISSED),
    ],
)
def test_a_named_line_is_exact_adjacent_or_missed(changes: dict[str, object], answer: Answer) -> None:
    assert judge_fault(PLANT, result(difference(**changes)), SOURCES) is answer


def test_a_call_of_the_baseline_alone_is_judged_by_the_line_it_has_there() -> None:
    text = "b\n" + TEXT.replace("  # PLANT", "\nc2  # PLANT")  # the candidate's lines moved down, behind the place
    expected = (Expected(groups=("originates",), file="model.py", at="d"),)
    fault = Fault(name="x", mechanism="", candidate=Variant(), expected=expected)
    sources = Sources(baseline={"model.py": TEXT}, candidate={"model.py": text})
    alone = difference(line=4, baseline_site="model.py:4", candidate_site="")
    paired = difference(line=4, baseline_site="model.py:4", candidate_site="model.py:4")
    assert judge_fault(fault, result(alone), sources) is Answer.EXACT
    assert judge_fault(fault, result(paired), sources) is Answer.ADJACENT


def test_the_planted_line_recorded_on_one_side_is_adjacent() -> None:
    one = OneSided("candidate", 0, 0, "blocks.0.attention", "aten.mul.Tensor", "model.py", 4, 1, 7, (1, 1), (2, 2))
    found = result(difference(line=15), recorded_on_one_side=(one,))
    assert judge_fault(PLANT, found, SOURCES) is Answer.ADJACENT


def test_no_difference_is_missed() -> None:
    assert judge_fault(PLANT, result(None), SOURCES) is Answer.MISSED


def test_an_outside_statement_has_to_name_the_source_and_only_it() -> None:
    fault = Fault(
        name="x", mechanism="", candidate=Variant(), expected=(Expected(groups=("outside",), names=("up.weight",)),)
    )
    named = Outside(0, 0, "begin", "parameter", "up.weight", "1", "2")
    other = Outside(0, 0, "begin", "parameter", "down.weight", "1", "2")
    late = Outside(0, 1, "begin", "parameter", "up.weight", "1", "2")
    assert judge_fault(fault, result(None, outside=(named,)), SOURCES) is Answer.EXACT
    assert judge_fault(fault, result(None, outside=(named, other)), SOURCES) is Answer.MISSED
    assert judge_fault(fault, result(None, outside=(late,)), SOURCES) is Answer.MISSED


def test_a_strict_control_may_not_differ_at_all() -> None:
    control = Control(name="x", mechanism="")
    assert judge_control(control, result(None)) is Answer.SILENT
    assert judge_control(control, result(difference(group=Group.PROPAGATES))) is Answer.FALSE_CLAIM
    assert judge_control(control, result(difference(phase="backward"))) is Answer.FALSE_CLAIM


def test_where_bits_truly_differ_only_an_origin_is_a_claim() -> None:
    control = Control(name="x", mechanism="", bits_differ=True)
    followed = msgspec.structs.replace(result(difference(group=Group.PROPAGATES)), origins=())
    assert judge_control(control, followed) is Answer.SILENT
    assert judge_control(control, result(difference(phase="backward"))) is Answer.FALSE_CLAIM


def test_a_control_that_re_associates_is_judged_by_the_first_forward_pass() -> None:
    control = Control(name="x", mechanism="", strict=False)
    assert judge_control(control, result(difference(phase="backward"))) is Answer.SILENT
    assert judge_control(control, result(difference(step=1))) is Answer.SILENT
    assert judge_control(control, result(difference())) is Answer.FALSE_CLAIM


@pytest.mark.parametrize(
    ("ranks", "others", "answer"),
    [((0, 1), (0, 1), Answer.EXACT), ((0, 1), (0,), Answer.ADJACENT), ((1,), (0,), Answer.MISSED)],
)
def test_the_right_line_has_to_be_named_for_the_right_ranks(
    ranks: tuple[int, ...], others: tuple[int, ...], answer: Answer
) -> None:
    expected = (Expected(groups=("originates",), file="model.py", at="# PLANT", ranks=ranks),)
    fault = Fault(name="x", mechanism="", candidate=Variant(), expected=expected)
    origins = tuple(difference(rank=rank) for rank in others)
    found = msgspec.structs.replace(result(difference()), origins=origins)
    assert judge_fault(fault, found, SOURCES) is answer


def test_an_outside_statement_has_to_hold_for_the_right_ranks() -> None:
    expected = (Expected(groups=("outside",), names=("up.weight",), ranks=(1,)),)
    fault = Fault(name="x", mechanism="", candidate=Variant(), expected=expected)
    right = Outside(1, 0, "begin", "parameter", "up.weight", "1", "2")
    wrong = Outside(0, 0, "begin", "parameter", "up.weight", "1", "2")
    assert judge_fault(fault, result(None, outside=(right,)), SOURCES) is Answer.EXACT
    assert judge_fault(fault, result(None, outside=(right, wrong)), SOURCES) is Answer.MISSED
    assert judge_fault(fault, result(difference(rank=0), outside=(right,)), SOURCES) is Answer.MISSED
    assert judge_fault(fault, result(difference(rank=1), outside=(right,)), SOURCES) is Answer.MISSED
    reader = difference(rank=1, group=Group.OUTSIDE)
    assert judge_fault(fault, result(reader, outside=(right,)), SOURCES) is Answer.EXACT


def checked(*failed: Invariant) -> Checked:
    return Checked(
        format=FORMAT,
        version=VERSION,
        run=agreeing().baseline,
        invariants=failed,
        coverage={},
        counts={},
        limits=(),
    )


def failed(*names: str, identity: str = "replicas.gradients", step: int = 0, total: int = 0) -> Invariant:
    evidence = Evidence(names=names, total=total or len(names))
    return Invariant(id=identity, status=Held.FAIL, rank=-1, step=step, name="", evidence=evidence)


@pytest.mark.parametrize(
    ("found", "answer"),
    [
        ([failed("up.weight", "down.weight")], Answer.EXACT),
        ([failed("up.weight", total=2)], Answer.EXACT),  # a list that was cut off
        ([failed("up.weight")], Answer.ADJACENT),
        ([failed("up.weight", "down.weight", "norm.weight")], Answer.ADJACENT),
        ([failed("norm.weight")], Answer.MISSED),
        ([failed("up.weight", "down.weight", step=1)], Answer.MISSED),
        ([failed("up.weight", "down.weight", identity="replicas.parameters")], Answer.MISSED),
        ([], Answer.MISSED),
    ],
)
def test_a_check_has_to_fail_the_invariant_first_at_the_step_for_the_names(
    found: list[Invariant], answer: Answer
) -> None:
    wanted = ExpectedCheck(invariant="replicas.gradients", names=("up.weight", "down.weight"))
    fault = Fault(name="x", mechanism="", candidate=Variant(), expected=(), check=(wanted,))
    assert judge_check(fault, checked(*found)) is answer


def test_any_failing_invariant_of_a_control_is_a_false_claim() -> None:
    held = Invariant(id="loss.finite", status=Held.PASS, rank=0, step=-1, name="", evidence=Evidence())
    assert judge_control_check(checked(held)) is Answer.SILENT
    assert judge_control_check(checked(held, failed())) is Answer.FALSE_CLAIM
