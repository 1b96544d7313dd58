"""The same from Python: load a manifest, summarise it, compare, and ask what is behind a figure (AT-19)."""

from pathlib import Path

from paritrace import __version__
from paritrace.attempts.assessing import Assessed, assess
from paritrace.attempts.cautions import cautions
from paritrace.attempts.comparing import compared, level_of, pairs_of, with_holm
from paritrace.attempts.details import detail_of
from paritrace.attempts.explaining import Explained, explained, figures_of
from paritrace.attempts.gate import Gate, comparison_verdict, gate_of
from paritrace.attempts.loading import Loaded
from paritrace.attempts.loading import load as load_manifest
from paritrace.attempts.look_ledger import ledger_of
from paritrace.attempts.look_ledger import record_look as append_look
from paritrace.attempts.looks import Looked, look_of, looked
from paritrace.attempts.manifest import Configuration
from paritrace.attempts.rate_card import RateCard
from paritrace.attempts.result import (
    COMPARISON_FORMAT,
    SUMMARY_FORMAT,
    VERSION,
    AttemptDetail,
    AttemptsComparison,
    OfConfiguration,
    Summary,
)
from paritrace.attempts.summarising import of_configuration
from paritrace.clock import SYSTEM, Clock
from paritrace.errors import HostError, RequestError
from paritrace.evidence.coverage import CoverageState


def load(manifest: str | Path) -> Loaded:
    """Returns a manifest that holds together.

    Raises:
        RequestError: Refused, `bad_attempts_manifest`: `details` has every problem.
        HostError: Refused: it cannot be read.
    """
    return load_manifest(manifest)


def summarize(
    loaded: Loaded, *, details: bool = False, card: RateCard | None = None, gate: Gate | None = None
) -> Summary:
    """Returns what `paritrace attempts summarize` prints: figures, gaps, warnings.

    Args:
        loaded: what `load` returned.
        details: every attempt and request too.
        card: prices usage again, beside what providers reported.
        gate: the user's rules.

    Raises:
        RequestError: Refused, `path_outside`: a source lies outside the manifest's directory and its roots.
        HostError: Refused, `missing_extra`: SciPy is not installed.
    """
    assessed = assess(loaded, card=card)
    summary = summary_of(assessed, details=details)
    return summary if gate is None else _judged(summary, gate)


def compare(
    loaded: Loaded,
    *,
    baseline: str | None = None,
    candidate: str | None = None,
    card: RateCard | None = None,
    gate: Gate | None = None,
) -> AttemptsComparison:
    """Returns what `paritrace attempts compare` prints, for the pairs named, else the primary one, else all.

    Raises:
        RequestError: Refused, `no_such_configuration`, `path_outside`.
        HostError: Refused, `missing_extra`.
    """
    assessed = assess(loaded, card=card)
    head = loaded.head
    known = {one.id for one in head.configurations}
    for name in (baseline, candidate):
        if name is not None and name not in known:
            raise RequestError(
                f"the manifest has no configuration {name}",
                code="no_such_configuration",
                fix=f"name one of {', '.join(sorted(known))}",
            )
    summary = summary_of(assessed, details=False)
    configurations = {one.id: one for one in summary.configurations}
    names = pairs_of(head, baseline=baseline, candidate=candidate)
    history = _looked(loaded)
    pairs = with_holm([compared(one, assessed.tallies, configurations, head, history=history) for one in names])
    comparison = AttemptsComparison(
        format=COMPARISON_FORMAT,
        version=VERSION,
        paritrace=__version__,
        scipy=summary.scipy,
        manifest_sha256=loaded.sha256,
        primary=head.primary,
        pairs=pairs,
        num_comparisons=len(pairs),
        summary=summary,
    )
    if gate is None:
        return comparison
    from msgspec.structs import replace

    verdict, rules = comparison_verdict(gate, comparison)
    return replace(comparison, verdict=verdict, rules=rules)


def record_look(loaded: Loaded, *, clock: Clock = SYSTEM) -> Path | None:
    """Records beside the manifest that its results are looked at, and returns where; None without a primary analysis.

    `paritrace attempts summarize` and `compare` do so before they show anything. The same attempts under the same
    analysis are one look, however often they are shown.

    Raises:
        HostError: Refused, or Failed where a line was cut off: the disk is full, or the folder takes no file.
    """
    look = look_of(loaded.head, loaded.raw, manifest_sha256=loaded.sha256, unix_ns=clock.wall_ns())
    if look is None:
        return None
    append_look(loaded.path, look)
    return ledger_of(loaded.path)


def _looked(loaded: Loaded) -> Looked:
    now = look_of(loaded.head, loaded.raw, manifest_sha256=loaded.sha256, unix_ns=0)
    return looked(loaded.head, now, loaded.looks, num_unreadable=loaded.num_unreadable_looks)


def explain(loaded: Loaded, figure: str, *, card: RateCard | None = None) -> Explained:
    """Returns the attempts, files and lines behind a figure, named as the summary's JSON names it.

    Raises:
        RequestError: Refused, `no_such_figure`: the message lists what there is.
    """
    return explained(assess(loaded, card=card), figure)


def figures(loaded: Loaded) -> tuple[str, ...]:
    """Returns the names that `explain` takes; raises as it does."""
    return tuple(figures_of(assess(loaded)))


def summary_of(assessed: Assessed, *, details: bool) -> Summary:
    """Returns the summary of a manifest that was weighed."""
    loaded = assessed.loaded
    level = level_of(loaded.head)
    declared: dict[str, Configuration] = {one.id: one for one in loaded.head.configurations}
    found = tuple(
        of_configuration(assessed.tallies[name], declared[name], level=level, card=assessed.card)
        for name in sorted(declared)
    )
    return Summary(
        format=SUMMARY_FORMAT,
        version=VERSION,
        paritrace=__version__,
        scipy=_scipy_version(),
        manifest_sha256=loaded.sha256,
        importer=loaded.head.importer,
        sources=tuple(sorted(loaded.head.sources, key=lambda one: one.id)),
        configurations=found,
        warnings=cautions(found, assessed.tallies, assessed.surveyed),
        noted=loaded.head.gaps,
        complete=bool(found) and not loaded.head.gaps and all(_is_complete(one) for one in found),
        details=_details(assessed) if details else None,
    )


def _is_complete(one: OfConfiguration) -> bool:
    """Whether attempts, verdicts, tokens and cost of a configuration are all there."""
    states = [one.attempts_state, one.requests_state, *(cost.sum.state for cost in one.costs)]
    states += [one.tokens["input_tokens"].state, one.tokens["output_tokens"].state]
    unjudged = any(
        count
        for judge in one.evaluators
        for name, count in judge.states.items()
        if name not in ("evaluated_pass", "evaluated_fail", "evaluated_score")
    )
    return bool(one.costs) and not unjudged and set(states) == {CoverageState.COMPLETE}


def _details(assessed: Assessed) -> tuple[AttemptDetail, ...]:
    judges = assessed.surveyed.evaluators
    found = (detail_of(one, judges.get(one.attempt.configuration_id, ())) for one in assessed.facts())
    return tuple(sorted(found, key=lambda one: (one.configuration_id, one.task_id, one.task_revision, one.attempt_id)))


def _judged(summary: Summary, gate: Gate) -> Summary:
    from msgspec.structs import replace

    verdict, rules = gate_of(gate, summary, ())
    return replace(summary, verdict=verdict, rules=rules)


def _scipy_version() -> str:
    import scipy

    return str(scipy.__version__)


def require_scipy() -> None:
    """Raises HostError (Refused), `missing_extra`, where SciPy is not installed."""
    from importlib.util import find_spec

    if find_spec("scipy") is None:
        raise HostError(
            "statistics of attempts need SciPy, which is not installed",
            code="missing_extra",
            fix="pip install 'paritrace[attempts]'",
        )
