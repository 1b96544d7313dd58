"""Policies and exit statuses over rows of tokens and resumes: what they come to decides (CP-13, CP-27, CP-28)."""

import pytest
from msgspec.structs import replace

from paritrace.cli.allowances import judgement, status_of_comparison
from paritrace.compare.joined_outcomes import resume_unknown, rows_unknown
from paritrace.compare.policy import RuleResult, Verdict
from paritrace.compare.policy_file import parse_policy
from paritrace.compare.policy_verdict import with_joined
from paritrace.compare.result import Comparison, EnvelopeUsed, Mark
from paritrace.compare.settings import Settings
from paritrace.compare.token_rows_result import TokenRowsFound
from paritrace.reports.leading import is_rows
from tests.compare import resumed_training
from tests.compare.token_workloads import LENGTHS, capture, compared, padded, single

PASS, FAIL, UNDETERMINED = Verdict.PASS, Verdict.FAIL, Verdict.UNDETERMINED
RULES = b"""
format = "paritrace-policy"
version = "1.0"
rules = [
    {kind = "rows_agree"}, {kind = "rows_agree", at_least = "~"}, {kind = "inside_envelope"},
    {kind = "resume_agrees"}, {kind = "resume_agrees", group = "scheduler"}, {kind = "resume_agrees", group = "rng"},
]
"""
POLICY = Settings(policy=parse_policy(RULES, name="p.toml"))


def whole(of: Comparison) -> Comparison:
    return replace(of, coverage={side: replace(each, complete=True) for side, each in of.coverage.items()})


def status(of: Comparison, *allow: str) -> int:
    without = replace(whole(of), policy=None)
    return status_of_comparison(without, judgement(exit_code=True, allow=allow, exit_zero=False, envelope=True))


def rules(of: Comparison) -> list[RuleResult]:
    judged = with_joined(of, POLICY.policy)
    assert judged.policy is not None
    assert judged.verdict == judged.policy.verdict.value
    return list(judged.policy.rules)


def verdicts(of: Comparison) -> list[Verdict]:
    return [rule.verdict for rule in rules(of)]


@pytest.fixture(scope="module")
def unlike(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """The same samples padded and one by one: rows differ by round-off, and calls by what they were given.

    In the padded batch each shorter sample has one log-probability more, of the padding behind it.
    """
    place = tmp_path_factory.mktemp("rows")
    found = compared(capture(place / "a", padded), capture(place / "b", single), settings=POLICY).result
    assert rows_unknown(found.token_rows) == rows_of(found).only_baseline == len(LENGTHS) - 1
    return with_rows(found, only_baseline=0)


def rows_of(of: Comparison) -> TokenRowsFound:
    assert of.token_rows is not None
    return of.token_rows


def with_rows(of: Comparison, **changes: object) -> Comparison:
    return replace(of, token_rows=replace(rows_of(of), **changes))


def test_cp27_unlike_batches_are_judged_by_their_rows(unlike: Comparison) -> None:
    assert is_rows(unlike)
    assert unlike.policy is not None
    assert [rule.verdict for rule in unlike.policy.rules[:2]] == [FAIL, UNDETERMINED]
    first = unlike.policy.rules[0]
    assert "rows side by side" in first.evidence
    assert first.place is not None
    assert "position" in first.place.slot
    assert status(unlike) == 1, "a row that differs in bits"
    assert status(unlike, "inside-envelope") == 3, "which nothing judges"


def test_cp27_rows_that_all_agree_are_no_difference_though_the_batches_are_others(unlike: Comparison) -> None:
    agree = with_rows(unlike, agree=rows_of(unlike).aligned, differ=0)
    assert rows_unknown(rows_of(agree)) == 0
    assert status(agree) == status(agree, "inside-envelope") == 0
    assert verdicts(agree)[:2] == [PASS, PASS]
    weights = replace(agree, ladder=agree.ladder | {"weights": Mark.BEYOND})
    assert status(weights) == 1, "what was computed with is another"


def test_cp27_a_row_beyond_the_envelope_is_a_difference_and_one_inside_may_be_allowed(unlike: Comparison) -> None:
    inside = with_rows(unlike, judged=100, beyond=0)
    assert status(inside) == 1
    assert status(inside, "inside-envelope") == 0
    assert verdicts(inside)[:2] == [FAIL, PASS]
    beyond = with_rows(unlike, judged=100, beyond=1, first_beyond=rows_of(unlike).first)
    assert status(beyond, "inside-envelope") == 1
    assert verdicts(beyond)[:2] == [FAIL, FAIL]


@pytest.mark.parametrize(
    "unknown",
    [
        {"ambiguous": 1},
        {"not_comparable": {"scheme": 1}},
        {"tokens": (sum(LENGTHS), 1, 0)},
        {"only_candidate": 1},
        {"undefined": 1},
    ],
)
def test_cp27_a_row_that_cannot_be_told_is_undetermined(unlike: Comparison, unknown: dict[str, object]) -> None:
    agree = with_rows(unlike, **{"agree": rows_of(unlike).aligned, "differ": 0} | unknown)
    assert status(agree) == 3
    assert status(agree, "undetermined=1") == status(agree, "undetermined") == 0
    assert verdicts(agree)[:2] == [UNDETERMINED, UNDETERMINED]


def test_a10_another_token_is_a_difference_inside_any_envelope(unlike: Comparison) -> None:
    parted = with_rows(unlike, agree=rows_of(unlike).aligned - 1, differ=1, judged=100, num_choices=1)
    assert status(parted, "inside-envelope") == 1
    assert verdicts(parted)[:2] == [FAIL, FAIL]


def test_cp13_the_envelope_speaks_of_rows_too(unlike: Comparison) -> None:
    agreeing = dict.fromkeys(unlike.ladder, Mark.AGREES)
    calls = replace(unlike, ladder=agreeing, envelope=EnvelopeUsed("perturbed baselines", 8, 0.11, judged=10))
    assert verdicts(calls)[2] is UNDETERMINED, "rows differ and none is judged"
    assert verdicts(with_rows(calls, judged=100))[2] is PASS
    out = with_rows(calls, judged=100, beyond=2, first_beyond=rows_of(unlike).first)
    rule = rules(out)[2]
    assert rule.verdict is FAIL
    assert rule.evidence.endswith("2 of 100 judged rows of tokens beyond")
    assert rule.place is not None


def test_cp27_runs_without_rows_leave_a_rule_about_them_undetermined(unlike: Comparison) -> None:
    assert verdicts(replace(unlike, token_rows=None))[:2] == [UNDETERMINED, UNDETERMINED]
    apart = with_rows(unlike, aligned=0, agree=0, differ=0)
    assert verdicts(apart)[:2] == [UNDETERMINED, UNDETERMINED]
    assert status(apart) == 1, "no row stands beside another: calls decide"


@pytest.fixture(scope="module")
def resumes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Comparison]:
    place = tmp_path_factory.mktemp("resume")
    kept = place / "kept.pt"
    run = resumed_training.train(place / "whole", kept)
    return {
        forget: resumed_training.compared(
            run, resumed_training.train(place / f"run-{forget}", kept, resume=True, forget=forget), settings=POLICY
        )
        for forget in ("", "scheduler")
    }


def test_cp28_a_resume_that_parts_is_a_difference(resumes: dict[str, Comparison]) -> None:
    right, wrong = resumes[""], resumes["scheduler"]
    assert resume_unknown(right.resume) == 0
    assert status(right) == 0
    assert verdicts(right)[3:] == [PASS, PASS, PASS]
    assert status(wrong) == status(wrong, "inside-envelope") == 1
    assert verdicts(wrong)[3:] == [FAIL, FAIL, PASS]
    place = rules(wrong)[3].place
    assert place is not None
    assert (place.step, place.slot) == (resumed_training.BOUNDARY, "scheduler StepLR.last_epoch")


def test_cp28_what_one_side_alone_has_leaves_a_resume_undetermined(resumes: dict[str, Comparison]) -> None:
    right = resumes[""].resume
    assert right is not None
    gone = tuple(replace(part, unknown=1) if part.group == "rng" else part for part in right.parts)
    doubtful = replace(resumes[""], resume=replace(right, parts=gone))
    assert status(doubtful) == 3
    assert verdicts(doubtful)[3:] == [UNDETERMINED, PASS, UNDETERMINED]
    lacking = replace(resumes[""], resume=replace(right, ranks_missing=(1,)))
    assert status(lacking) == 3
    assert verdicts(lacking)[3] is UNDETERMINED


def test_cp28_without_a_resume_a_rule_about_it_is_undetermined(unlike: Comparison) -> None:
    assert verdicts(unlike)[3:] == [UNDETERMINED] * 3
