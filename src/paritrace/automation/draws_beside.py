"""The draws that lie beside a baseline, opened to judge a candidate by (CP-10a)."""

from collections.abc import Generator
from contextlib import ExitStack, contextmanager

from paritrace.compare.judged_by import JudgedBy
from paritrace.compare.judgement import PERTURBED
from paritrace.runs.draws import draws_of
from paritrace.runs.reading import Run, open_run


@contextmanager
def draws_beside(baseline: Run) -> Generator[JudgedBy | None]:
    """What judges by the draws of a baseline, as long as the block runs; None without any."""
    with ExitStack() as opened:
        runs = tuple(opened.enter_context(open_run(path)) for path in draws_of(baseline.folder))
        yield JudgedBy(PERTURBED, runs) if runs else None
