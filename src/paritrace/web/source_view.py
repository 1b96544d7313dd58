"""Source texts that runs keep, both sides line by line, with the lines that calls came from marked (CA-26, SU-10)."""

from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path, PurePath

import msgspec
from msgspec import Struct

from paritrace.compare.result import RunRef
from paritrace.compare.rows import Side
from paritrace.correspondence.crossing import surviving
from paritrace.correspondence.lines import related_lines
from paritrace.errors import EvidenceError, ParitraceError
from paritrace.evidence.gaps import Gap
from paritrace.reports.shelf import Result
from paritrace.runs.envelope import AttachmentKind
from paritrace.runs.reading import Run, open_run

MOST_LINES = 1500  # of one page; of a longer file the part around the line that was asked for
MAIN = "<main>"
HEAD_CHUNKS = 4  # MiB of a journal in which the main script is looked for: it stands among the first records
RUN_ABOVE_RESULT = 2  # RUN/comparisons/BASELINE/KEY: parents between a kept result and its candidate's run


class SourceText(Struct, frozen=True):
    """One side's file as the run keeps it; `why` says why there is no text. `others`: further versions kept."""

    side: str
    file: str
    digest: str
    text: str
    why: str
    others: tuple[str, ...] = ()


class SourceRow(Struct, frozen=True):
    """A line of either side or of both; 0 and "" where a side has none here. `calls`: status -> calls of that line."""

    baseline: int
    baseline_text: str
    baseline_calls: Mapping[str, int]
    candidate: int
    candidate_text: str
    candidate_calls: Mapping[str, int]
    changed: bool


class SourcePage(Struct, frozen=True):
    """Both sides of a file; `rows` are lines `first` and on of `total`."""

    file: str
    line: int
    texts: tuple[SourceText, SourceText]
    rows: tuple[SourceRow, ...]
    total: int
    first: int


def source_text(result: Result, /, side: Side, file: str, *, digest: str = "") -> SourceText:
    """Returns the text of a file that a side's calls came from, or why there is none."""
    try:
        with open_side(result, side) as run:
            file = _recorded_name(run, file)
            kept = _kept_versions(run, file)
            wanted = digest if digest in kept else next(iter(kept), "")
            text = run.source(wanted) if wanted else None
    except ParitraceError as error:
        return SourceText(side, file, "", "", f"the run cannot be read: {error.message}")
    if text is None:
        return SourceText(side, file, "", "", "the run keeps no source of this file")
    return SourceText(side, file, wanted, text, "", tuple(one for one in kept if one != wanted))


def open_side(result: Result, side: Side, /) -> Run:
    """Opens the run of a side where the comparison found it, or above the kept result if it was moved with it.

    Raises:
        EvidenceError: Refused: it cannot be read, or another run lies there now.
        HostError: Refused: it is gone.
    """
    stated: RunRef = result.comparison.baseline if side is Side.BASELINE else result.comparison.candidate
    try:
        return _opened(Path(stated.path), stated)
    except ParitraceError:
        if side is Side.BASELINE or result.kept is None or len(result.path.parents) <= RUN_ABOVE_RESULT:
            raise
        return _opened(result.path.resolve().parents[RUN_ABOVE_RESULT], stated)


def _opened(path: Path, stated: RunRef) -> Run:
    run = open_run(path)
    if run.run_id == stated.run_id:
        return run
    run.close()
    raise EvidenceError(
        f"{path} holds run {run.run_id} now, not {stated.run_id}",
        code="another_run",
        fix="put the run back, or compare again",
    )


def _kept_versions(run: Run, file: str) -> tuple[str, ...]:
    rows = (one for one in run.envelope.attachments if one.kind is AttachmentKind.SOURCE and one.title == file)
    return tuple(dict.fromkeys(one.sha256 for one in rows if not isinstance(one.sha256, Gap)))


def _recorded_name(run: Run, file: str) -> str:
    """The name under which a run keeps a file: the main script is shown by its own name and kept as `<main>`."""
    if _kept_versions(run, file) or not _kept_versions(run, MAIN):
        return file
    return MAIN if any(_main_script(run.journal_bytes(one.session_id)) == file for one in run.sessions[:1]) else file


def _main_script(chunks: Iterable[bytes]) -> str:
    """The name of the main script, from the first of its places that a journal defines."""
    head = b"".join(islice(chunks, HEAD_CHUNKS))
    found = next((line for line in head.split(b"\n") if b'"type":"site"' in line and b'"kind":"main"' in line), b"{}")
    try:
        return PurePath(str(msgspec.json.decode(found, type=dict[str, object]).get("path", ""))).name
    except msgspec.DecodeError:
        return ""


Calls = Mapping[int, Mapping[str, int]]


def source_page(
    texts: tuple[SourceText, SourceText], calls: tuple[Calls, Calls], /, *, line: int, side: Side
) -> SourcePage:
    """Returns the lines of both sides beside each other, lines that are alike in one row."""
    rows = _beside(texts[0].text.splitlines(), texts[1].text.splitlines(), _related(texts), calls)
    first = _first(rows, line=line, side=side)
    return SourcePage(texts[0].file, line, texts, tuple(rows[first : first + MOST_LINES]), len(rows), first)


def _first(rows: list[SourceRow], *, line: int, side: Side) -> int:
    if len(rows) <= MOST_LINES:
        return 0
    place = next(
        (n for n, row in enumerate(rows) if line == (row.baseline if side is Side.BASELINE else row.candidate)), 0
    )
    return max(0, min(place - MOST_LINES // 2, len(rows) - MOST_LINES))


def _related(texts: tuple[SourceText, SourceText]) -> dict[int, int]:
    """Line -> line of those alike and in order; a line that moved stands where each side has it."""
    pairs = sorted(related_lines(texts[0].text, texts[1].text).items())
    alive = surviving([theirs for _, theirs in pairs])
    return {ours: theirs for (ours, theirs), lives in zip(pairs, alive, strict=True) if lives}


def _beside(
    left: list[str], right: list[str], related: Mapping[int, int], calls: tuple[Calls, Calls]
) -> list[SourceRow]:
    rows: list[SourceRow] = []
    ours, theirs = 1, 1
    for a, b in [*related.items(), (len(left) + 1, len(right) + 1)]:
        for step in range(max(a - ours, b - theirs)):
            mine = ours + step if ours + step < a else 0
            yours = theirs + step if theirs + step < b else 0
            rows.append(_row(mine, left, yours, right, calls, changed=True))
        ours, theirs = a, b
        if a <= len(left) and b <= len(right):
            rows.append(_row(a, left, b, right, calls, changed=False))
            ours, theirs = a + 1, b + 1
    return rows


def _row(a: int, left: list[str], b: int, right: list[str], calls: tuple[Calls, Calls], *, changed: bool) -> SourceRow:
    return SourceRow(
        baseline=a,
        baseline_text=left[a - 1] if a else "",
        baseline_calls=calls[0].get(a, {}) if a else {},
        candidate=b,
        candidate_text=right[b - 1] if b else "",
        candidate_calls=calls[1].get(b, {}) if b else {},
        changed=changed,
    )
