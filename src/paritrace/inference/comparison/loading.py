"""The runs of an arm from disk: their artifacts in one pass each, and their conditions (IN-17)."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from paritrace.errors import EvidenceError, RequestError
from paritrace.evidence.digests import sha256_hex, sha256_of
from paritrace.evidence.plain_json import parse
from paritrace.files import LOCAL
from paritrace.inference.artifact import ARTIFACT_NAME, Events, head_of, place_of
from paritrace.inference.comparison.comparing import ArmRun
from paritrace.inference.comparison.conditions import BLOCK, FILE_NAME, FORMAT, Condition, Conditions
from paritrace.inference.comparison.objectives import Objective
from paritrace.inference.comparison.result import ComparedRun
from paritrace.inference.comparison.run_facts import Tally, tallies

MOST_RUNS = 10_000
MOST_CONDITIONS_BYTES = 1 << 20
_SERVER_SIDE = frozenset({"otlp"})  # spans tell of the same requests as their clients do, and of fewer ways to fail


def arm_of(path: Path, *, source: str | None, objectives: Sequence[Objective] = ()) -> list[ArmRun]:
    """Returns the runs of an arm: one run directory, or a folder of some.

    Raises:
        EvidenceError: Refused: `no_artifact`, `no_requests`, `bad_conditions`, and what reading an artifact refuses.
        RequestError: Refused, `several_sources` where a run has requests of several and none is named.
    """
    runs = _runs(path)
    if not runs:
        raise EvidenceError(
            f"{path} is no run with inference evidence, and no folder of some",
            code="no_artifact",
            fix="make one: `paritrace infer init RUN`, and import what a client recorded",
        )
    return [_run(run, source=source, objectives=objectives) for run in runs]


def _runs(path: Path) -> list[Path]:
    if not path.is_dir() or LOCAL.exists(path / ARTIFACT_NAME):
        return [path]
    return [one for one in LOCAL.list(path)[:MOST_RUNS] if one.is_dir() and LOCAL.exists(one / ARTIFACT_NAME)]


def _run(path: Path, *, source: str | None, objectives: Sequence[Objective]) -> ArmRun:
    place = place_of(path)
    run_id = head_of(place).context.facts.run_id
    tally = _chosen(tallies(Events(place), objectives=objectives), path, source=source)
    fields, conditions_sha256 = _conditions(place.folder / FILE_NAME)
    facts = tally.facts(run_id, fields)
    block = fields.get(BLOCK)
    run = ComparedRun(
        run_id=run_id,
        path=str(path),
        artifact_sha256=sha256_of(LOCAL.iter_chunks(place.path)).sha256,
        source=facts.source,
        block=None if block is None else str(block.value),
        populations=facts.populations,
        figures=dict(sorted(facts.figures.items())),
        summary_only=facts.summary_only,
        conditions_sha256=conditions_sha256,
    )
    return ArmRun(run, facts.fields, facts.scheduled)


def _chosen(found: dict[str, Tally], path: Path, *, source: str | None) -> Tally:
    """The one source of a run's requests: what two of them tell of the same requests is never added up."""
    if source is not None and source in found:
        return found[source]
    clients = [name for name in found if name not in _SERVER_SIDE] or list(found)
    if source is None and len(clients) == 1:
        return found[clients[0]]
    if source is None and clients:
        raise RequestError(
            f"{path} has requests of {len(clients)} sources: {', '.join(sorted(clients))}",
            code="several_sources",
            fix="name one of them: --source NAME",
        )
    raise EvidenceError(
        f"{path} has no requests" + (f" of {source}" if source is not None else ""),
        code="no_requests",
        fix="import what a client recorded: `paritrace infer import client FILE --run RUN`",
    )


def _conditions(path: Path) -> tuple[dict[str, Condition], str | None]:
    """The stated conditions of a run; none where there is no such file."""
    data = LOCAL.read_if_present(path)
    if data is None:
        return {}, None
    try:
        if len(data) > MOST_CONDITIONS_BYTES or (parsed := parse(data, path=path.name, within_64_bits=True)).refusals:
            raise _bad(path, "it is no strict JSON, or too large")
        document = msgspec.convert(parsed.value, Conditions)
    except msgspec.ValidationError as error:
        raise _bad(path, str(error)) from error
    if document.format != FORMAT or document.version.partition(".")[0] != "1":
        raise _bad(path, f"format {document.format[:60]!r} {document.version[:20]!r}")
    return dict(document.fields), sha256_hex(data)


def _bad(path: Path, why: str) -> EvidenceError:
    return EvidenceError(
        f"{path} does not state conditions: {why}",
        code="bad_conditions",
        fix="`paritrace schema inference-conditions` prints the format",
    )
