"""Rules that hold a comparison against the expected answer; pure functions of records and source texts."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from benchmarks.faults.case import Answer, Control, Expected, ExpectedCheck, Fault
from paritrace.compare.checks_result import Checked, Invariant, Outcome
from paritrace.compare.result import Comparison, Difference, Group, Outside

CLAIMS = (Group.ORIGINATES, Group.OUTSIDE)
CLAIMED = (*CLAIMS, Group.REWIRED)
# An inserted line and the call that reads its result stand at most this many lines apart in the workload.
ADJACENT_LINES = 4
MAIN = ("<main>", "train.py")


@dataclass(frozen=True, kw_only=True)
class Sources:
    """The texts of the two sides, by the file names of the workload."""

    baseline: Mapping[str, str]
    candidate: Mapping[str, str]

    def lines_with(self, file: str, piece: str) -> set[int]:
        """Numbers of the lines that hold `piece`: of the candidate, or of the baseline where it has none."""
        numbers = numbers_with(self.candidate.get(file, ""), piece)
        return numbers or numbers_with(self.baseline.get(file, ""), piece)


def numbers_with(text: str, piece: str) -> set[int]:
    return {number for number, line in enumerate(text.splitlines(), start=1) if piece in line}


def judge_fault(fault: Fault, comparison: Comparison, sources: Sources) -> Answer:
    """How the first place that the comparison names stands to the places an expert would accept."""
    answers = {answer_for(expected, comparison, sources) for expected in fault.expected}
    for answer in (Answer.EXACT, Answer.ADJACENT, Answer.UNDETERMINED):
        if answer in answers:
            return answer
    return Answer.MISSED


def answer_for(expected: Expected, comparison: Comparison, sources: Sources) -> Answer:
    if expected.groups == ("step",):
        return Answer.EXACT if first_step(comparison) == expected.step else Answer.MISSED
    first = named_first(comparison)
    if expected.names and not (expected.phase or expected.file):
        named = names_outside(expected, comparison) and not contradicted(expected, first)
        return Answer.EXACT if named else Answer.MISSED
    if first is None or not same_moment(first, expected):
        return Answer.MISSED
    answer = with_ranks(place_answer(expected, first, comparison, sources), expected, first, comparison)
    if first.group is Group.UNDETERMINED and answer is not Answer.MISSED:
        return Answer.UNDETERMINED
    return answer if first.group in expected.groups else Answer.MISSED


def same_moment(first: Difference, expected: Expected) -> bool:
    if first.step != expected.step or (expected.phase and first.phase != expected.phase):
        return False
    return expected.microbatch is None or first.microbatch == expected.microbatch


def named_first(comparison: Comparison) -> Difference | None:
    """What stands first before a person: the first finding; where there is none, the first difference."""
    return comparison.findings[0].place if comparison.findings else comparison.first_difference


def contradicted(expected: Expected, first: Difference | None) -> bool:
    """Whether the line on top claims another origin, or one on a rank where there is none, whatever stands below it."""
    if not expected.ranks or first is None or first.group not in CLAIMED:
        return False
    return first.group is not Group.OUTSIDE or first.rank not in expected.ranks


def place_answer(expected: Expected, first: Difference, comparison: Comparison, sources: Sources) -> Answer:
    if expected.module and not same_module(first.module, expected.module):
        return Answer.MISSED
    if expected.function and not first.region and not first.function.startswith(expected.function):
        return Answer.MISSED
    told = (first.cause, first.slot, first.collective)
    if expected.names and not any(name in words for name in expected.names for words in told):
        return Answer.MISSED
    if not expected.at:
        return Answer.EXACT
    wanted = sources.lines_with(expected.file, expected.at)
    before = numbers_with(sources.baseline.get(expected.file, ""), expected.at)
    if any(number in wanted for number in named_lines(first, expected.file)):
        return Answer.EXACT
    if not first.candidate_site and before & set(site_lines(first.baseline_site, expected.file)):
        return Answer.EXACT  # a call of the baseline alone, by the baseline's line
    beside = one_sided_lines(comparison, first, expected.file)
    near = {near_line for number in wanted for near_line in range(number - ADJACENT_LINES, number + ADJACENT_LINES + 1)}
    if beside & wanted or near & set(named_lines(first, expected.file)):
        return Answer.ADJACENT
    return Answer.MISSED


def with_ranks(answer: Answer, expected: Expected, first: Difference, comparison: Comparison) -> Answer:
    """The right place on another rank is missed; on the right rank, but with others too or too few, it is adjacent."""
    if not expected.ranks or answer is Answer.MISSED:
        return answer
    if first.rank not in expected.ranks:
        return Answer.MISSED
    named = {found.rank for found in (first, *comparison.origins) if same_place(found, first)}
    named |= {rank for found in comparison.findings if same_place(found.place, first) for rank in found.ranks}
    return answer if named == set(expected.ranks) else Answer.ADJACENT


def same_place(found: Difference, first: Difference) -> bool:
    """Whether both are the same line of the workload in the same step and phase, perhaps on another rank."""
    places = [(one.step, one.phase, one.module, one.file, one.line) for one in (found, first)]
    return places[0] == places[1]


def same_module(named: str, expected: str) -> bool:
    """The planted module itself or one inside it; a region may be named by its enclosing module."""
    return named == expected or named.startswith(expected + ".") or (named != "" and expected.startswith(named + "."))


def named_lines(first: Difference, file: str) -> Iterator[int]:
    """Lines of `file` that the difference names: its own and the sites of both sides (`FILE:LINE` or `FILE:A-B`)."""
    if same_file(first.file, file):
        yield first.line
    for site in (first.candidate_site, first.baseline_site):
        yield from site_lines(site, file)


def site_lines(site: str, file: str) -> Iterator[int]:
    """Lines of `file` that a site names."""
    name, _, span = site.rpartition(":")
    if same_file(name, file):
        start, _, end = span.partition("-")
        yield from range(int(start), int(end or start) + 1)


def one_sided_lines(comparison: Comparison, first: Difference, file: str) -> set[int]:
    """Lines of `file` with calls of one side only, in the step of the first difference."""
    return {
        found.line
        for found in comparison.recorded_on_one_side
        if found.step == first.step and same_file(found.file, file)
    }


def same_file(named: str, file: str) -> bool:
    return named == file or (file == "train.py" and named in MAIN)


def first_step(comparison: Comparison) -> int | None:
    steps = [found.step for found in comparison.origins] + [found.step for found in comparison.outside]
    if comparison.first_difference is not None:
        steps.append(comparison.first_difference.step)
    if comparison.settled is not None and comparison.settled.first_different is not None:
        steps.append(comparison.settled.first_different.step)
    return min(steps, default=None)


def names_outside(expected: Expected, comparison: Comparison) -> bool:
    """Whether the earliest `outside` statement names one of the expected sources at the expected step."""
    earliest = min((found.step for found in comparison.outside), default=None)
    if earliest is None or earliest != expected.step:
        return False
    named = [found for found in comparison.outside if found.step == earliest]
    ranks = {found.rank for found in named}
    return all(matches(found, expected) for found in named) and (not expected.ranks or ranks == set(expected.ranks))


def matches(found: Outside, expected: Expected) -> bool:
    return found.name in expected.names or found.group in expected.names


def judge_control(control: Control, comparison: Comparison) -> Answer:
    """Silence is right: no claimed origin, for a strict control none anywhere, else none in the first forward pass."""
    return Answer.FALSE_CLAIM if any(claims_of(control, comparison)) else Answer.SILENT


def claims_of(control: Control, comparison: Comparison) -> Iterator[str]:
    for found in comparison.origins:
        if found.group in CLAIMS and (control.strict or (found.step == 0 and found.phase == "forward")):
            yield f"{found.group.value} {found.file}:{found.line}"
    first_weights = [found for found in comparison.outside if control.strict or found.step == 0]
    yield from (f"outside {found.name}" for found in first_weights)
    if control.strict and not control.bits_differ and comparison.counts.different:
        yield f"{comparison.counts.different} calls differ"


def judge_check(fault: Fault, checked: Checked) -> Answer:
    """How what fails in the faulty run alone stands to what an expert would accept."""
    answers = {check_answer(expected, checked) for expected in fault.check}
    return next((answer for answer in (Answer.EXACT, Answer.ADJACENT) if answer in answers), Answer.MISSED)


def check_answer(expected: ExpectedCheck, checked: Checked) -> Answer:
    """Exact: fails first at this step and for these names; adjacent: these are among the names, or some of them."""
    failed = [found for found in failures(checked) if found.id == expected.invariant]
    steps = [found.step for found in failed]
    if not failed or (expected.step >= 0 and min(steps) != expected.step):
        return Answer.MISSED
    first = [found for found in failed if found.step == min(steps)]
    names = {name for found in first for name in found.evidence.names}
    wanted = set(expected.names)
    if not wanted or names == wanted or (names < wanted and any(of.evidence.total >= len(wanted) for of in first)):
        return Answer.EXACT
    return Answer.ADJACENT if names & wanted else Answer.MISSED


def judge_control_check(checked: Checked) -> Answer:
    """A run without a bug fails no invariant."""
    return Answer.FALSE_CLAIM if any(failures(checked)) else Answer.SILENT


def failures(checked: Checked) -> list[Invariant]:
    return [found for found in checked.invariants if found.status is Outcome.FAIL]


def said_by_check(checked: Checked) -> str:
    """What fails in a few words; what holds is not listed."""
    words = [
        f"step {found.step} rank {found.rank} {found.id} {', '.join(found.evidence.names[:3])}".strip()
        for found in failures(checked)
    ]
    return "; ".join(words[:3]) or "nothing claimed"


def said(comparison: Comparison) -> str:
    """The comparison's first statement in a few words."""
    first = named_first(comparison)
    if first is not None:
        place = f"{first.file}:{first.line} {first.function}" if first.file else first.function
        where = f"{rank_words(comparison, first.rank)}{first.phase} {first.group.value} {first.module or '-'}"
        return f"step {first.step} {where} {place} {first.collective or first.cause}".strip()
    if comparison.outside:
        found = comparison.outside[0]
        return f"step {found.step} {rank_words(comparison, found.rank)}outside {found.group} {found.name}"
    return "no difference"


def rank_words(comparison: Comparison, rank: int) -> str:
    """The ranks of the first statement; nothing where there is one rank only."""
    if len(comparison.ranks_compared) < 2:
        return ""
    ranks = comparison.findings[0].ranks if comparison.findings else ()
    return f"rank {', '.join(str(one) for one in ranks or (rank,))} "
