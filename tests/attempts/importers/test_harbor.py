"""Harbor jobs become attempts: what Harbor leaves out, what it deleted, what it never ran (AT-16, D-08)."""

import json
import shutil
from pathlib import Path

import pytest

from paritrace.attempts.accounts import AccountingSource, PricingKind
from paritrace.attempts.gaps import AttemptGap
from paritrace.attempts.importers.importing import tool_of
from paritrace.attempts.manifest import Execution, StopKind, VerdictKind
from paritrace.errors import EvidenceError
from tests.attempts.importers.evidence import ALPHA, DATA, manifest_of, refused_of, verdicts, written

TRAJECTORY = DATA / "nemo_fabric" / "swebench" / "hermes-relay" / "trajectory.trimmed.json"


@pytest.fixture
def job(tmp_path: Path) -> Path:
    return Path(shutil.copytree(ALPHA, tmp_path / "alpha"))


def test_at_16_a_job_is_its_lock_file_and_a_trial_left_out_counts_as_missing() -> None:
    manifest = manifest_of("harbor", ALPHA)
    assert len(manifest.attempts) == 12
    assert verdicts(manifest) == {"pass": 1, "fail": 6, "execution failed": 5}
    left_out = [one for one in manifest.attempts if one.evaluations and not one.evaluations[0].counts]
    assert {one.stop.word for one in left_out} == {"ApiRateLimitError"}
    assert [one.evaluations[0].verdict for one in left_out] == [VerdictKind.FAIL] * 5  # the reward stays a column


def test_at_16_retries_whose_folders_were_deleted_are_a_gap_with_their_trials() -> None:
    (gap,) = manifest_of("harbor", ALPHA).configurations[0].gaps
    assert (gap.reason, gap.count) == (AttemptGap.RETRY_DESTROYED, 6)
    assert "double-1__ejjd6HV x2" in gap.detail
    assert gap.origin is not None
    assert gap.origin.pointer == "/stats/n_retries"


def test_at_8_cost_is_known_of_six_trials_and_who_priced_it_is_not() -> None:
    costs = [cost for one in manifest_of("harbor", ALPHA).attempts if one.accounting for cost in one.accounting.costs]
    assert len(costs) == 6
    assert {cost.basis.kind for cost in costs} == {PricingKind.UNKNOWN}
    assert sum(cost.amount for cost in costs) == pytest.approx(0.030525)


def test_at_4_an_exception_with_a_valid_reward_failed_and_was_judged() -> None:
    attempts = {one.attempt_id: one for one in manifest_of("harbor", ALPHA).attempts}
    one = attempts["double-1__mvngrsB"]
    assert (one.execution, one.stop.kind, one.evaluations[0].counts) == (Execution.FAILED, StopKind.ERROR, True)


def test_at_16_a_result_that_is_a_loop_of_links_is_refused_and_the_rest_read(job: Path) -> None:
    place = job / "double-1__9k28ehG" / "result.json"
    place.unlink()
    place.symlink_to(place.name)
    assert len(manifest_of("harbor", job, base=job).attempts) == 12
    assert "Too many levels of symbolic links" in refused_of("harbor", job, base=job)[0]


def test_at_16_a_count_beyond_all_bounds_makes_no_manifest_that_cannot_be_summed(job: Path) -> None:
    place = job / "double-1__9k28ehG" / "result.json"
    result = json.loads(place.read_bytes())
    place.write_text(json.dumps(result | {"agent_result": {"n_input_tokens": 5, "n_output_tokens": 10**400}}))
    assert "an attempt that no manifest can hold" in refused_of("harbor", job, base=job)[0]


def test_at_16_a_trial_without_a_folder_is_missing_and_one_without_a_result_is_there(job: Path) -> None:
    shutil.rmtree(job / "double-1__9k28ehG")
    (job / "double-2__vxTSgwT" / "result.json").unlink()
    manifest = manifest_of("harbor", job, base=job)
    assert verdicts(manifest) == {"fail": 6, "execution failed": 4, "execution unknown": 1, "missing": 1}
    missing = next(one for one in manifest.attempts if not one.present)
    assert missing.task_id == "double-1"
    unread = next(one for one in manifest.attempts if one.attempt_id == "double-2__vxTSgwT")
    assert [gap.reason for gap in unread.gaps] == [AttemptGap.RESULT_MISSING]
    assert unread.task_revision.startswith("sha256:a5f70592")


def test_at_16_a_torn_result_is_refused_and_the_other_trials_are_read(job: Path) -> None:
    result = job / "double-1__9k28ehG" / "result.json"
    result.write_bytes(result.read_bytes()[:700])
    manifest = manifest_of("harbor", job, base=job)
    assert len(manifest.attempts) == 12
    (refusal,) = refused_of("harbor", job, base=job)
    assert refusal.startswith("double-1__9k28ehG/result.json, line ")
    assert refusal.endswith("(torn)")


def test_at_16_a_verifier_that_failed_says_nothing_of_the_attempt(job: Path) -> None:
    path = job / "double-2__vxTSgwT" / "result.json"
    plain = json.loads(path.read_text())
    plain |= {"exception_info": {"exception_type": "VerifierTimeoutError"}, "verifier_result": None}
    written(path, plain)
    attempts = {one.attempt_id: one for one in manifest_of("harbor", job, base=job).attempts}
    one = attempts["double-2__vxTSgwT"]
    assert (one.execution, one.stop.kind) == (Execution.SUCCEEDED, StopKind.FINISHED)
    assert [one.evaluations[0].verdict] == [VerdictKind.ERROR]


def test_at_3_a_trajectory_counts_only_where_the_trial_does_not_and_never_in_a_total(job: Path) -> None:
    path = job / "double-2__vxTSgwT" / "result.json"
    plain = json.loads(path.read_text())
    written(path, plain | {"agent_result": None})
    agent = path.parent / "agent"
    agent.mkdir()
    shutil.copy(TRAJECTORY, agent / "trajectory.json")
    attempts = {one.attempt_id: one for one in manifest_of("harbor", job, base=job).attempts}
    one = attempts["double-2__vxTSgwT"]
    assert one.accounting is not None
    assert (one.accounting.source, one.accounting.usage[0].input_tokens) == (AccountingSource.LEGACY, 1_000_574)
    assert AttemptGap.LEGACY_ONLY in [gap.reason for gap in one.gaps]


def test_at_10_settings_that_were_not_recorded_are_null() -> None:
    fields = manifest_of("harbor", ALPHA).configurations[0].fields
    assert (fields["harbor"], fields["concurrency"], fields["model"]) == ("0.26.0", "1", None)


def test_a_folder_that_is_no_job_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError) as refused:
        manifest_of("harbor", tmp_path, base=tmp_path)
    assert refused.value.code == "not_a_job"
    assert tool_of(tmp_path) is None
    assert tool_of(ALPHA) == "harbor"


def test_at_16_one_trial_by_itself_does_not_say_of_how_many() -> None:
    manifest = manifest_of("harbor", ALPHA / "double-2__vxTSgwT")
    assert verdicts(manifest) == {"pass": 1}
    assert [gap.reason for gap in manifest.configurations[0].gaps] == [AttemptGap.ATTEMPT_LIST_UNVERIFIED]


def test_at_16_a_trajectory_by_itself_is_an_attempt_whose_totals_are_a_diagnostic() -> None:
    (attempt,) = manifest_of("harbor", TRAJECTORY).attempts
    assert attempt.accounting is not None
    assert attempt.accounting.source is AccountingSource.LEGACY
    assert attempt.evaluations == ()


def test_a_file_that_is_no_trajectory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError) as refused:
        manifest_of("harbor", written(tmp_path / "x.json", {"a": 1}), base=tmp_path)
    assert refused.value.code == "not_a_job"
