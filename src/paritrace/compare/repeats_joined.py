"""Holds a baseline against each of its repeats, and joins what that says to a comparison (A-08, CP-10)."""

from collections.abc import Sequence

from msgspec.structs import replace

from paritrace.compare.engine import compare
from paritrace.compare.repeats import repeats_of
from paritrace.compare.result import Comparison
from paritrace.compare.settings import Settings
from paritrace.process.pool import Pool
from paritrace.runs.reading import Run


def with_repeats(
    comparison: Comparison, baseline: Run, repeats: Sequence[Run], *, settings: Settings, pool: Pool | None = None
) -> Comparison:
    """The comparison with where its baseline differs from its own repeats; memory holds one of them at a time.

    Raises:
        EvidenceError, HostError: as `engine.compare` says.
    """
    if not repeats:
        return comparison
    alike = Settings(
        steps=settings.steps, ranks=settings.ranks, ignore=settings.ignore, strip_prefix=settings.strip_prefix
    )
    found = [compare(baseline, repeat, alike, pool=pool).result for repeat in repeats]
    return replace(comparison, repeats=repeats_of(found))
