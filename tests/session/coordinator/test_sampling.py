"""Samples of metrics are kept without a line per step, bounded, and whatever the disk does (SE-14, SU-10)."""

from pathlib import Path
from typing import Any

import pytest

from paritrace.errors import EvidenceError, HostError
from paritrace.files import Files
from paritrace.session.coordinator import sampling
from paritrace.session.coordinator.sampling import SampleWriter
from paritrace.session.messages import Beat
from paritrace.session.metrics import FILE, read_metrics
from paritrace.session.states import RankState
from tests.session.coordinator.test_books import FullDisk


def beat(step: int | None, metrics: dict[str, Any] | None = None, *, epoch: int = 1, generation: int = 1) -> Beat:
    return Beat(
        generation=generation,
        rank=0,
        epoch=9,
        state=RankState.RUNNING,
        step=99,
        pending=0,
        config_revision=7,
        metrics=metrics or {"loss": 0.5},
        metrics_step=step,
        metrics_epoch=epoch,
        metrics_revision=3,
    )


def test_a_sample_is_of_the_step_that_was_measured_and_each_is_taken_once(tmp_path: Path) -> None:
    writer = SampleWriter(tmp_path)
    again = beat(4, epoch=2)
    told = [writer.take(one) for one in (beat(4), beat(4), beat(6), again, beat(4, generation=2, epoch=2))]
    assert told == [True, False, True, True, True]
    assert writer.take(Beat(1, 0, 9, RankState.IDLE, 0, 0, 0)) is False, "before the first step"
    found = [(one.generation, one.epoch, one.config_revision, one.step) for one in read_metrics(tmp_path).samples]
    assert found == [(1, 1, 3, 4), (1, 1, 3, 6), (1, 2, 3, 4), (2, 2, 3, 4)]
    writer.close()


def test_a_later_coordinator_numbers_on(tmp_path: Path) -> None:
    for generation in (1, 2):
        writer = SampleWriter(tmp_path)
        for step in range(2):
            writer.take(beat(step, generation=generation))
        writer.close()
    assert [one.number for one in read_metrics(tmp_path).samples] == [1, 2, 3, 4]


def test_the_file_is_bounded_and_says_what_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "MOST_SAMPLES", 8)
    writer = SampleWriter(tmp_path)
    for step in range(100):
        writer.take(beat(step))
        assert len(read_metrics(tmp_path).samples) < 8
    kept = read_metrics(tmp_path)
    assert (kept.every, [one.number for one in kept.samples]) == (16, [1, 17, 33, 49, 65, 81, 97])
    assert (kept.num_taken, kept.num_left_out) == (97, 90)
    writer.close()
    later = SampleWriter(tmp_path)
    for step in range(100, 132):
        later.take(beat(step))
    assert [one.number for one in read_metrics(tmp_path).samples] == [1, 33, 65, 97, 129]
    later.close()


def test_wide_metrics_are_bounded_by_their_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "MOST_BYTES", 20_000)
    writer = SampleWriter(tmp_path)
    for step in range(40):
        writer.take(beat(step, {f"{'m' * 90}{number}": 0.1 for number in range(64)}))
        assert (tmp_path / FILE).stat().st_size < 20_000
    writer.close()


def test_a_full_disk_loses_samples_and_says_how_many(tmp_path: Path) -> None:
    disk = FullDisk()
    writer = SampleWriter(tmp_path, files=Files(disk))
    writer.take(beat(0))
    disk.full = True
    for step in (1, 2):
        with pytest.raises(HostError):
            writer.take(beat(step))
    disk.full = False
    writer.take(beat(3))
    found = read_metrics(tmp_path)
    assert ([one.step for one in found.samples], found.num_left_out) == ([0, 3], 2)
    writer.close()


def test_a_file_of_another_program_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("mine\n")
    writer = SampleWriter(tmp_path)
    with pytest.raises(EvidenceError):
        writer.take(beat(0))
    assert (tmp_path / FILE).read_text() == "mine\n"
    writer.close()
