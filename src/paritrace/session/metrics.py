"""The metrics of a session as they are kept: samples of rank 0, about one a second, never one a step (SE-14, SU-10).

A sample is what rank 0 told of its latest step with a heartbeat. Steps between two samples were not looked at. The file
is bounded: when it is full every second sample leaves it, and from then on half as many are kept. Numbers alone are
kept; texts, which may be the workload's own words, are counted.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from paritrace.errors import EvidenceError
from paritrace.evidence.versions import Reading, reading_of
from paritrace.files import LOCAL, Files

FILE = "metrics.jsonl"
FORMAT = "paritrace-session-metrics"
VERSION = "1.0"
MOST_NAMES = 64  # of one sample; a rank tells up to 200
MOST_LETTERS = 100  # of a name; a longer one is no name of a metric
NOT_FINITE = frozenset({"nan", "inf", "-inf"})  # as a heartbeat tells such numbers

Figure = int | float | Literal["nan", "inf", "-inf"]


class Head(Struct, frozen=True, forbid_unknown_fields=True):
    """The first line. `every`: of so many samples one is kept, the first, as long as the file is not made anew."""

    every: int = 1
    format: str = FORMAT
    version: str = VERSION


class Sample(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What rank 0 told of one step. `number` counts all samples that were taken, kept or not, from 1.

    `epoch`, `config_revision`: what the step was admitted under; they and the generation name its segment. `left_out`:
    how many metrics of this step are no numbers, or beyond what is kept of one sample.
    """

    number: int
    unix_ns: int
    generation: int
    epoch: int
    config_revision: int
    step: int
    metrics: dict[str, Figure]
    left_out: int = 0


class KeptMetrics(Struct, frozen=True, forbid_unknown_fields=True):
    """All samples that are kept, in their order. `num_taken` includes those that are not: thinned out, or unwritten.

    `num_torn`: lines that cannot be read; `every` as in the file's head.
    """

    samples: tuple[Sample, ...] = ()
    num_taken: int = 0
    every: int = 1
    num_torn: int = 0
    format: str = FORMAT
    version: str = VERSION

    @property
    def num_left_out(self) -> int:
        """How many samples were taken and are not kept."""
        return self.num_taken - len(self.samples)


_ENCODER = msgspec.json.Encoder()
_HEAD = msgspec.json.Decoder(Head)
_SAMPLE = msgspec.json.Decoder(Sample)


def encoded(line: Head | Sample, /) -> bytes:
    """Return a line as it stands in the file, with its end."""
    return _ENCODER.encode(line) + b"\n"


def figures_of(metrics: Mapping[str, Any], /) -> tuple[dict[str, Figure], int]:
    """Return what is kept of metrics as a heartbeat tells them, and how many are not."""
    kept: dict[str, Figure] = {}
    for name, value in metrics.items():
        if len(kept) < MOST_NAMES and len(name) <= MOST_LETTERS and _is_figure(value):
            kept[name] = value
    return kept, len(metrics) - len(kept)


def _is_figure(value: object) -> bool:
    if isinstance(value, str):
        return value in NOT_FINITE
    return isinstance(value, int | float) and not isinstance(value, bool)


def read_metrics(directory: Path, /, *, files: Files = LOCAL) -> KeptMetrics:
    """Return the samples of a session's directory, none where there are none yet; no owner is asked.

    Raises:
        EvidenceError: Refused, `newer_version`, `invalid_document`: another major version wrote it, or another program.
    """
    data = files.read_if_present(directory / FILE)
    return KeptMetrics() if not data else metrics_of(data)


def metrics_of(data: bytes, /) -> KeptMetrics:
    """Return what the bytes of a file hold; raises as `read_metrics`."""
    lines = data.splitlines(keepends=True)
    head = _head(lines[0])
    rest = [line for line in lines[1:] if line.strip()]
    samples = tuple(_samples(rest))
    taken = max((one.number for one in samples), default=0)
    return KeptMetrics(samples, taken, head.every, len(rest) - len(samples))


def _head(line: bytes) -> Head:
    try:
        head = _HEAD.decode(line)
    except msgspec.DecodeError as error:
        raise _foreign(f"it does not begin as one: {error}") from None
    if head.format != FORMAT or head.every < 1:
        raise _foreign("it does not begin as one")
    match reading_of(head.version, ours=VERSION):
        case Reading.SAME | Reading.NEWER_MINOR:
            return head
        case Reading.OTHER_MAJOR | Reading.FOREIGN:
            raise EvidenceError(
                f"{FILE} of the session has version {head.version!r}, this paritrace reads {VERSION}",
                code="newer_version",
                fix="use the paritrace that the session was made with",
            )


def _samples(lines: list[bytes]) -> Iterator[Sample]:
    for line in lines:
        if line.endswith(b"\n"):
            try:
                yield _SAMPLE.decode(line)
            except msgspec.DecodeError:
                continue


def _foreign(why: str) -> EvidenceError:
    return EvidenceError(
        f"{FILE} holds no metrics of a session: {why}",
        code="invalid_document",
        fix="restore it from a copy, or remove it: the session records on in a new one",
    )
