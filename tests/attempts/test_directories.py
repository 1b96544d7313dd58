"""Two log directories without a manifest first: the inventory, the noise floor, attempts judged twice (AT-22, D-20)."""

import json
from pathlib import Path

import pytest

from paritrace.attempts import api
from paritrace.attempts.directories import Directories, load_directories
from paritrace.attempts.noise import Noise, noise_of
from paritrace.attempts.result import Claim
from paritrace.attempts.statistics.records import Absent, Estimate, NotEstimable
from paritrace.errors import RequestError
from tests.attempts.importers.evidence import ALPHA, INSPECT_A, INSPECT_B, inspect_log, inspect_sample, written


def logged(folder: Path, values: str, *, run: str) -> Path:
    """A folder with one synthetic Inspect log: a value for each sample."""
    samples = [inspect_sample(f"s{i}", scores={"match": {"value": value}}) for i, value in enumerate(values)]
    ids = {"sample_ids": [sample["id"] for sample in samples]}
    written(folder / "log.json", inspect_log(samples, run_id=run, task_id=f"T-{run}", dataset=ids))
    return folder


def noise(found: Directories) -> Noise:
    pairs = [
        api.compare(found.loaded, baseline=found.baseline, candidate=name).pairs[0]
        for name in (found.candidate, *found.repeats)
    ]
    return noise_of(pairs[0], tuple(pairs[1:]))


def test_at_22_two_logs_are_compared_without_a_manifest() -> None:
    found = load_directories(INSPECT_A, INSPECT_B)
    (pair,) = api.compare(found.loaded, baseline=found.baseline, candidate=found.candidate).pairs
    assert pair.claim is Claim.UNDETERMINED
    assert pair.bounds == pytest.approx((-0.2222222222222222, 0.16666666666666666))
    assert sum(len(lost) for lost in pair.lost.values()) == 7
    assert pair.tipping
    assert found.judged_twice is None


def test_at_22_directories_of_two_tools_share_no_task() -> None:
    found = load_directories(INSPECT_A, ALPHA)
    (pair,) = api.compare(found.loaded, baseline=found.baseline, candidate=found.candidate).pairs
    assert pair.claim is Claim.NOT_COMPARABLE
    assert len(pair.matching.candidate_only) == 3


def test_at_22_directories_of_one_name_are_told_apart_by_what_is_above_them(tmp_path: Path) -> None:
    left = logged(tmp_path / "monday" / "logs", "CI", run="R1")
    right = logged(tmp_path / "friday" / "logs", "CC", run="R2")
    found = load_directories(left, right)
    assert (found.baseline, found.candidate) == ("monday/logs", "friday/logs")


def test_d_20_the_same_attempts_judged_twice_are_told_by_their_changed_verdicts(tmp_path: Path) -> None:
    first = logged(tmp_path / "judge1", "CCIIC", run="R1")
    second = logged(tmp_path / "judge2", "CICIC", run="R1")
    found = load_directories(first, second)
    assert found.judged_twice is not None
    assert (found.judged_twice.num_same, found.judged_twice.num_agree) == (5, 3)
    assert found.judged_twice.changes == {"fail -> pass": 1, "pass -> fail": 1}
    assert len(found.judged_twice.changed) == 2
    (pair,) = api.compare(found.loaded, baseline=found.baseline, candidate=found.candidate).pairs
    assert isinstance(pair.difference, Estimate)
    assert pair.difference.num_attempts == 10  # nothing is taken for a conflict, nothing for one attempt seen twice


def test_at_22_a_difference_that_repeats_reach_too_is_noise_of_the_harness(tmp_path: Path) -> None:
    base = logged(tmp_path / "a", "CCCCIIII", run="R0")
    cand = logged(tmp_path / "b", "CCCIIIII", run="R1")
    repeats = [logged(tmp_path / f"a{i}", "CCCCCIII" if i else "CCCCIIIC", run=f"A{i}") for i in range(4)]
    found = noise(load_directories(base, cand, repeats=repeats))
    assert found.num_as_large == 4
    assert found.beyond is False
    assert found.chance_at_most == 1.0


def test_at_22_beyond_every_repeat_has_a_rate_from_four_repeats_on(tmp_path: Path) -> None:
    base = logged(tmp_path / "a", "CCCCCCCC", run="R0")
    cand = logged(tmp_path / "b", "IIIIIIII", run="R1")
    repeats = [logged(tmp_path / f"a{i}", "CCCCCCCI", run=f"A{i}") for i in range(4)]
    assert noise(load_directories(base, cand, repeats=repeats)).chance_at_most == pytest.approx(0.2)
    few = noise(load_directories(base, cand, repeats=repeats[:3]))
    assert few.beyond is True
    assert isinstance(few.chance_at_most, Absent)
    assert few.chance_at_most.gap is NotEstimable.TOO_FEW_ATTEMPTS


def test_at_22_the_baseline_itself_is_no_repeat(tmp_path: Path) -> None:
    base = logged(tmp_path / "a", "CI", run="R0")
    with pytest.raises(RequestError) as refused:
        load_directories(base, logged(tmp_path / "b", "CI", run="R1"), repeats=[base])
    assert refused.value.code == "not_a_repeat"


def test_at_22_a_folder_of_nothing_known_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.json").write_text(json.dumps({"x": 1}))
    with pytest.raises(RequestError) as refused:
        load_directories(tmp_path, INSPECT_A)
    assert refused.value.code == "not_attempts"


def test_a_single_task_that_differs_has_a_sign_flip_test(tmp_path: Path) -> None:
    """One flip has two outcomes, equally far from zero; SciPy's permutation test refuses a sample of one."""
    found = load_directories(logged(tmp_path / "a", "CCI", run="R0"), logged(tmp_path / "b", "CII", run="R1"))
    (pair,) = api.compare(found.loaded, baseline=found.baseline, candidate=found.candidate).pairs
    assert [test.p_value for test in pair.tests if test.name == "sign-flip permutation test"] == [1.0]
