"""Joins what the rows of tokens say to a comparison: reads them from both runs and from the draws (CP-27)."""

from collections.abc import Iterator

from msgspec.structs import replace

from paritrace.compare.judged_by import JudgedBy
from paritrace.compare.policy_verdict import with_joined
from paritrace.compare.result import Comparison
from paritrace.compare.settings import Settings
from paritrace.compare.token_rows import TokenRowsCompared, columns_of, compare_rows
from paritrace.compare.token_rows_align import Samples
from paritrace.compare.token_rows_envelope import row_envelope
from paritrace.compare.token_rows_load import SideRows, load_rows
from paritrace.runs.reading import Run

Without = tuple[frozenset[str], frozenset[str]]
"""Sessions of both sides that are known to hold no rows."""


def with_token_rows(
    comparison: Comparison, runs: tuple[Run, Run], *, settings: Settings, by: JudgedBy | None, without: Without
) -> tuple[Comparison, TokenRowsCompared | None]:
    """The comparison with its rows of tokens, and all of them; unchanged where neither run holds any.

    Rows are joined last: what a policy says of them, and of what was joined before, is judged here.
    """
    found, rows = _with_rows(comparison, runs, settings=settings, by=by, without=without)
    return with_joined(found, settings.policy), rows


def _with_rows(
    comparison: Comparison, runs: tuple[Run, Run], *, settings: Settings, by: JudgedBy | None, without: Without
) -> tuple[Comparison, TokenRowsCompared | None]:
    baseline = load_rows(runs[0], settings=settings, side="baseline", without=without[0])
    candidate = load_rows(runs[1], settings=settings, side="candidate", without=without[1])
    if not baseline.parts and not candidate.parts:
        return comparison, None
    samples = Samples()
    ours, theirs = columns_of(baseline, samples), columns_of(candidate, samples)
    origin = ours
    if by is not None and by.origin is not None:
        origin = columns_of(load_rows(by.origin, settings=settings, side="baseline"), samples)
    envelope = row_envelope(origin, _draws(by, settings), samples=samples)
    compared = compare_rows(ours, theirs, samples=samples, by=envelope, kind="" if by is None else by.kind)
    found = replace(compared.found, undefined=baseline.undefined + candidate.undefined)
    return replace(comparison, token_rows=found), compared


def _draws(by: JudgedBy | None, settings: Settings) -> Iterator[SideRows]:
    for run in () if by is None else by.runs:
        yield load_rows(run, settings=settings, side="baseline")
