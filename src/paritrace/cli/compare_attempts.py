"""`paritrace compare DIR DIR` on what evaluation tools left: attempts instead of calls (AT-22)."""

import re
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from paritrace.cli.other_kinds import form_of, require_only
from paritrace.cli.output import ExitStatus, note
from paritrace.cli.report_options import Output
from paritrace.errors import RequestError

if TYPE_CHECKING:
    from paritrace.attempts.directories import Directories
    from paritrace.attempts.noise import Noise
    from paritrace.attempts.result import AttemptsComparison
    from paritrace.reports.trajectories.document import Trajectories

MANIFEST_HEAD_BYTES = 4096  # a manifest says what it is at its beginning
MANIFEST_SAYS = re.compile(rb"""format["']?\s*:\s*["']?paritrace-attempts["'\s,}]""")
FORMATS = ("text", "json", "markdown", "html")


class Asked(Struct, frozen=True):
    """What the user asked for of a comparison of directories."""

    repeats: tuple[Path, ...]
    output: Output
    exit_code: bool


def is_of_attempts(base: Path, cand: Path) -> bool:
    """Say whether both paths hold what an evaluation tool left, and neither is a run of ours."""
    from paritrace.attempts.directories import are_attempts
    from paritrace.files import LOCAL
    from paritrace.runs.envelope import ENVELOPE_NAME

    if any(not path.exists() or LOCAL.exists(path / ENVELOPE_NAME) for path in (base, cand) if not path.is_file()):
        return False
    return are_attempts(base, cand)


def refuse_manifests(*paths: Path) -> None:
    """Refuse manifests of attempts, which hold all their configurations and are compared by another command.

    Raises:
        RequestError: Refused, `attempts_manifest_given`.
    """
    given = [path for path in paths if _is_manifest(path)]
    if given:
        raise RequestError(
            f"{given[0]} is a manifest of attempts, not a run",
            code="attempts_manifest_given",
            fix=f"paritrace attempts compare {quote(str(given[0]))}: it compares the configurations in one manifest",
        )


def _is_manifest(path: Path) -> bool:
    from paritrace.files import LOCAL

    if not LOCAL.exists(path) or not LOCAL.is_regular(path):
        return False
    head = b"".join(LOCAL.iter_chunks(path, length=MANIFEST_HEAD_BYTES))
    return MANIFEST_SAYS.search(head) is not None


def require_shared_options(context: click.Context) -> None:
    """Refuse options that mean nothing for attempts.

    Raises:
        RequestError: Refused, `not_for_attempts`.
    """
    require_only(
        context,
        lambda given: RequestError(
            f"these directories hold attempts, for which {given} means nothing",
            code="not_for_attempts",
            fix="leave it out; rules for attempts are given to `paritrace attempts compare --gate`",
        ),
        also=frozenset({"repeats"}),
    )


def compare_directories(base: Path, cand: Path, asked: Asked) -> ExitStatus:
    """Compare two log directories, each one configuration, and say what the evidence supports.

    Raises:
        RequestError: Refused: `no_such_format`, `not_attempts`.
        EvidenceError: Refused: `nothing_to_import`, `not_a_job`.
        HostError: Refused: `missing_extra`, or a folder cannot be read.
    """
    from paritrace.attempts.api import compare, require_scipy
    from paritrace.attempts.directories import load_directories
    from paritrace.cli.attempts import deliver
    from paritrace.reports.attempts.directories import FORMAT, VERSION, DirectoriesCompared, parts_of_directories
    from paritrace.reports.harmless import harmless

    require_scipy()
    form = form_of(asked.output, FORMATS, what="attempts are written")
    found = load_directories(base, cand, repeats=asked.repeats)
    for refusal in found.refused:
        note(f"not read: {harmless(str(refusal))}")
    comparison = compare(found.loaded, baseline=found.baseline, candidate=found.candidate)
    compared = DirectoriesCompared(
        format=FORMAT,
        version=VERSION,
        comparison=comparison,
        noise=_noise(found, comparison),
        judged_twice=found.judged_twice,
        trajectories=_trajectories(base, cand),
        refused=found.refused,
    )
    deliver(compared, parts_of_directories(compared), output=asked.output.path, form=form)
    return _status(comparison) if asked.exit_code else ExitStatus.DONE


def _noise(found: "Directories", comparison: "AttemptsComparison") -> "Noise | None":
    from paritrace.attempts.api import compare
    from paritrace.attempts.noise import noise_of

    if not found.repeats:
        return None
    repeats = (compare(found.loaded, baseline=found.baseline, candidate=name).pairs[0] for name in found.repeats)
    return noise_of(comparison.pairs[0], tuple(repeats))


def _trajectories(base: Path, cand: Path) -> "Trajectories | None":
    """Where the trajectories part, None where neither side recorded any."""
    from paritrace.attempts.trace_matching import Chosen
    from paritrace.cli.attempts_diverge import matched_tasks
    from paritrace.reports.trajectories.document import document, held

    evidence, matched = matched_tasks((base, cand), Chosen())
    if not matched.tasks:
        return None
    sources = tuple(evidence.sources[name] for name in sorted(evidence.sources))
    return document((str(base), str(cand)), matched, held(matched), sources=sources, refused=())


def _status(comparison: "AttemptsComparison") -> ExitStatus:
    from paritrace.attempts.result import Claim

    claims = {pair.claim for pair in comparison.pairs}
    if claims & {Claim.CONDITIONAL, Claim.ROBUST}:
        return ExitStatus.DIFFERENCE
    return ExitStatus.UNDETERMINED
