"""The one writer of a session's metrics: a line for each sample, never forced to disk, bounded by thinning (SE-14)."""

from pathlib import Path

from paritrace.clock import SYSTEM, Clock
from paritrace.files import LOCAL, Files
from paritrace.files.appender import Appender
from paritrace.session.messages import Beat
from paritrace.session.metrics import FILE, Head, Sample, encoded, figures_of, read_metrics

MOST_SAMPLES = 4096  # more than an hour of one a second; a page is as wide as some hundred
MOST_BYTES = 8 << 20  # what a workload with many metrics may take


class SampleWriter:
    """Numbers samples on through all coordinators of the directory. By the main thread alone."""

    def __init__(self, directory: Path, *, files: Files = LOCAL, clock: Clock = SYSTEM) -> None:
        self._directory = directory
        self._path = directory / FILE
        self._files = files
        self._clock = clock
        self._appender: Appender | None = None
        self._began = False
        self._number = 0
        self._every = 1
        self._num_lines = 0
        self._last: tuple[int, int | None, int | None] | None = None

    def take(self, beat: Beat) -> bool:
        """Take the metrics of a heartbeat; return whether they are of another step than those of the last one.

        A step is known by its generation, epoch and number: after a load the same number comes again.

        Raises:
            HostError, EvidenceError: it was not written; the sample is counted all the same.
        """
        step = beat.generation, beat.metrics_epoch, beat.metrics_step
        if not beat.metrics or step == self._last:
            return False
        self._last = step
        if beat.metrics_step is not None:
            self._write(beat, beat.metrics_step)
        return True

    def _write(self, beat: Beat, step: int) -> None:
        self._number += 1
        appender = self._opened()
        if (self._number - 1) % self._every:
            return
        figures, left_out = figures_of(beat.metrics)
        sample = Sample(
            number=self._number,
            unix_ns=self._clock.wall_ns(),
            generation=beat.generation,
            epoch=beat.metrics_epoch or 0,
            config_revision=beat.metrics_revision or 0,
            step=step,
            metrics=figures,
            left_out=left_out,
        )
        appender.write(encoded(sample))
        self._num_lines += 1
        if self._num_lines >= MOST_SAMPLES or appender.offset >= MOST_BYTES:
            self._thin()

    def _opened(self) -> Appender:
        if self._appender is None:
            kept = read_metrics(self._directory, files=self._files)
            if not self._began:
                self._number += kept.num_taken
            self._began, self._every, self._num_lines = True, kept.every, len(kept.samples)
            if not self._files.exists(self._path):
                self._files.replace(self._path, encoded(Head()))
            self._appender = self._files.append_existing(self._path)
        return self._appender

    def _thin(self) -> None:
        """Leave every second sample out, under the same name: a reader has the old file or the new one."""
        kept = read_metrics(self._directory, files=self._files)
        every = kept.every * 2
        lines = [encoded(Head(every)), *(encoded(one) for one in kept.samples if not (one.number - 1) % every)]
        self._files.replace(self._path, b"".join(lines))
        self.close()

    def close(self) -> None:
        """Let go of the file; the next sample opens it again."""
        appender, self._appender = self._appender, None
        if appender is not None:
            appender.close()
