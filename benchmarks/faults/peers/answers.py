"""What another tool names first, and how that stands to the planted place: pure rules (CP-18)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from benchmarks.faults.case import Answer, Control, Expected, Fault
from benchmarks.faults.judging import ADJACENT_LINES, Sources, numbers_with

FORWARD = "forward"


@dataclass(frozen=True, kw_only=True)
class Named:
    """A tool's first difference. `frames` are lines of the workload as (FILE, LINE), the innermost first, of `side`.

    `error` says why the tool gave no answer; `name` is empty when it found no difference.
    """

    name: str = ""
    frames: tuple[tuple[str, int], ...] = ()
    side: str = "candidate"
    step: int = -1
    phase: str = ""
    error: str = ""

    @property
    def claims(self) -> bool:
        return bool(self.name) and not self.error


def answer_to_fault(fault: Fault, named: Named, sources: Sources) -> Answer:
    """The best of the acceptable answers. No tool is asked for a module or a group of statements, only for a line."""
    if not named.claims:
        return Answer.MISSED
    answers = {answer_to(expected, named, sources) for expected in fault.expected}
    return next((answer for answer in (Answer.EXACT, Answer.ADJACENT) if answer in answers), Answer.MISSED)


def answer_to(expected: Expected, named: Named, sources: Sources) -> Answer:
    if named.step != expected.step:
        return Answer.MISSED
    if expected.groups == ("step",):
        return Answer.EXACT
    wanted = set(wanted_lines(expected, sources))
    own = sources.candidate if named.side == "candidate" else sources.baseline
    if any(frame in wanted and is_line(own, frame, expected) for frame in named.frames):
        return Answer.EXACT
    near = {(file, line + by) for file, line in wanted for by in range(-ADJACENT_LINES, ADJACENT_LINES + 1)}
    return Answer.ADJACENT if named.frames and named.frames[0] in near else Answer.MISSED


def wanted_lines(expected: Expected, sources: Sources) -> Iterator[tuple[str, int]]:
    """The planted lines; of a changed parameter those that call the module which owns it, and that which loads it."""
    if expected.at:
        yield from ((expected.file, line) for line in sources.lines_with(expected.file, expected.at))
        return
    for name in expected.names:
        owner = name.rpartition(".")[0].rpartition(".")[2]
        for file, text in sources.candidate.items():
            reads = numbers_with(text, f"self.{owner}(") if owner else set[int]()
            yield from ((file, line) for line in reads | numbers_with(text, "torch.load("))


def is_line(texts: Mapping[str, str], frame: tuple[str, int], expected: Expected) -> bool:
    """Whether this line of the tool's side is the planted one, and not merely has its number on the other side."""
    return not expected.at or frame[1] in numbers_with(texts.get(frame[0], ""), expected.at)


def answer_to_control(control: Control, named: Named) -> Answer:
    """A difference named is a false claim; where bits truly differ later on, only one in the first forward pass is."""
    if not named.claims:
        return Answer.SILENT
    first_forward = named.step == 0 and named.phase == FORWARD
    return Answer.FALSE_CLAIM if control.strict or first_forward else Answer.SILENT


def frames_of(frames: list[tuple[str, int]], *, renamed: Mapping[str, str]) -> tuple[tuple[str, int], ...]:
    """Frames by the file names of the workload, whatever a checkout calls its files."""
    original = {new: old for old, new in renamed.items()}
    return tuple((original.get(file, file), line) for file, line in frames)
