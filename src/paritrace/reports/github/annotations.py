"""Annotations of a workflow: `::error file=…,line=…::…`, at most ten of a kind, the rest counted (SU-14): pure."""

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum

from msgspec import Struct

from paritrace.compare.checks_result import Checked, Invariant, Outcome
from paritrace.compare.result import Comparison, Finding
from paritrace.reports.cases import is_inside
from paritrace.reports.check_screen import failing
from paritrace.reports.check_story import in_order
from paritrace.reports.harmless import harmless
from paritrace.reports.headline import BITS_ONLY
from paritrace.reports.wording import REASONS, count

MOST = 10  # of a kind in one step: GitHub shows no more, without a word
LONGEST = 2000


class Kind(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    NOTICE = "notice"


class Annotation(Struct, frozen=True):
    """`file` is empty where no line of this repository is meant."""

    kind: Kind
    title: str
    message: str
    file: str = ""
    line: int = 0


def of_comparison(comparison: Comparison, /, *, fails: bool, here: Callable[[str], str | None]) -> list[Annotation]:
    """Returns findings at the candidate's lines, and what is undetermined.

    Args:
        fails: the command ends with 1: then what is only known to have other bits is an error too.
        here: the path in the repository of a file as it was recorded, None for one that is not in it.
    """
    found = [_finding(finding, fails=fails, here=here) for finding in comparison.findings]
    for side, reasons in sorted(comparison.undetermined_by_reason.items()):
        words = {reason.value: text for reason, text in REASONS.items()}
        for reason, number in sorted(reasons.items(), key=lambda item: (-item[1], item[0])):
            if number:
                message = f"{count(number, 'call')} of the {side}: {words.get(reason, reason)}"
                found.append(Annotation(Kind.WARNING, f"paritrace: undetermined ({reason})", message))
    return found


def of_check(checked: Checked, /, *, here: Callable[[str], str | None]) -> list[Annotation]:
    """Returns the invariants that fail, then those that could not be checked."""
    failed = in_order(one for one in checked.invariants if one.status is Outcome.FAIL)
    unknown = [one for one in checked.invariants if one.status is Outcome.NOT_CHECKABLE]
    found = [_invariant(one, Kind.ERROR, failing(one), here=here) for one in failed]
    return found + [
        _invariant(one, Kind.WARNING, f"not checkable: {one.evidence.reason}", here=here) for one in unknown
    ]


def commands(annotations: Iterable[Annotation], /) -> Iterator[str]:
    """Yields workflow commands, at most MOST of each kind; of a kind with more the last one says how many are left."""
    by_kind: dict[Kind, list[Annotation]] = {kind: [] for kind in Kind}
    for annotation in annotations:
        by_kind[annotation.kind].append(annotation)
    for kind, found in by_kind.items():
        shown = found if len(found) <= MOST else found[: MOST - 1]
        yield from map(command, shown)
        if len(found) > len(shown):
            rest = len(found) - len(shown)
            yield command(Annotation(kind, "paritrace", f"{rest:,} more of {len(found):,} {kind}s are not shown here"))


def command(annotation: Annotation, /) -> str:
    """Returns one workflow command; nothing in it can begin another or end its line."""
    properties = [f"title={_property(annotation.title)}"]
    if annotation.file:
        properties.insert(0, f"file={_property(annotation.file)}")
        if annotation.line > 0:
            properties.insert(1, f"line={annotation.line}")
    return f"::{annotation.kind} {','.join(properties)}::{_data(annotation.message)}"


def _data(text: str) -> str:
    shown = text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text):,} characters)"
    return harmless(shown).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _finding(finding: Finding, *, fails: bool, here: Callable[[str], str | None]) -> Annotation:
    place = finding.place
    site = place.candidate_site or place.baseline_site
    file, _, line = site.rpartition(":")
    path = here(file) if file else None
    where = "" if path else f" ({site})" if site else ""
    message = f"{finding.sentence}{where} [{finding.strength}]"
    number = int(line) if path and line.isascii() and line.isdigit() else 0
    return Annotation(_kind(finding, fails=fails), f"paritrace {finding.id}", message, path or "", number)


def _kind(finding: Finding, *, fails: bool) -> Kind:
    if is_inside(finding):
        return Kind.NOTICE
    if finding.strength == BITS_ONLY and not fails:
        return Kind.WARNING  # nothing says whether it is more than round-off
    return Kind.ERROR


def _invariant(one: Invariant, kind: Kind, message: str, *, here: Callable[[str], str | None]) -> Annotation:
    evidence = one.evidence
    path = here(evidence.file) if evidence.file else None
    rank = f", rank {one.rank}" if one.rank >= 0 else ""
    facts = f": {'; '.join(evidence.facts[:2])}" if evidence.facts else ""
    title = f"paritrace {one.id}{rank}"
    return Annotation(kind, title, f"{message}{facts}", path or "", evidence.line if path else 0)
