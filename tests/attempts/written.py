"""Manifests for tests: written to a folder with their evidence, or held in memory."""

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import msgspec

from paritrace import attempts
from paritrace.attempts.accounts import Accounting, AccountingSource, Cost, PricingBasis, PricingKind, Usage
from paritrace.attempts.loading import Loaded, parse
from paritrace.attempts.manifest import (
    FORMAT,
    VERSION,
    Attempt,
    Configuration,
    Evaluation,
    Evaluator,
    Manifest,
    Relation,
    VerdictKind,
)
from paritrace.attempts.origins import Source
from paritrace.attempts.result import OfConfiguration, Summary

UNIT_TESTS = Evaluator("unit-tests", "1")
BILLED = PricingBasis(PricingKind.PROVIDER_REPORTED, "provider", "2026-11", verified=True)
PASS, FAIL = VerdictKind.PASS, VerdictKind.FAIL


def usage(**counters: object) -> Usage:
    """Counters whose conventions are declared, unless they say otherwise."""
    plain = {"model": "m", "input_includes_cache": True, "output_includes_reasoning": True}
    return msgspec.convert(plain | counters, Usage)


def accounting(*calls: Usage, cost: float | None = None, basis: PricingBasis = BILLED) -> Accounting:
    costs = () if cost is None else (Cost(cost, basis),)
    return Accounting(AccountingSource.HARNESS_REPORTED, usage=calls, costs=costs, complete=True)


WHOLE = accounting(
    usage(input_tokens=100, cached_input_tokens=0, cache_write_input_tokens=0, output_tokens=10, reasoning_tokens=0),
    cost=0.5,
)


def attempt(name: str, verdict: VerdictKind | None = PASS, **fields: object) -> Attempt:
    """An attempt `CONFIGURATION-TASK-NUMBER` with a whole account."""
    configuration, task, _ = name.rsplit("-", 2)
    judged = () if verdict is None else (Evaluation(UNIT_TESTS, verdict),)
    given = {
        "attempt_id": name,
        "configuration_id": configuration,
        "task_id": task,
        "task_revision": "1",
        "evaluations": judged,
        "accounting": WHOLE,
        "requests_complete": True,
    } | fields
    return Attempt(**given)  # type: ignore[arg-type]


def manifest(attempts: Sequence[Attempt], **fields: object) -> Manifest:
    """A manifest whose lists of attempts are declared complete."""
    names = sorted({one.configuration_id for one in attempts})
    given = {
        "format": FORMAT,
        "version": VERSION,
        "configurations": tuple(
            Configuration(one, attempts_complete=True, relation=Relation.INDEPENDENT) for one in names
        ),
        "attempts": tuple(attempts),
    } | fields
    return Manifest(**given)  # type: ignore[arg-type]


def loaded(of: Manifest, *, folder: Path = Path()) -> Loaded:
    data = msgspec.json.encode(of)
    return parse(data, name=str(folder / "manifest.json"), digest=sha256(data).hexdigest())


def summary(attempts_: Sequence[Attempt], **fields: object) -> Summary:
    return attempts.summarize(loaded(manifest(attempts_, **fields)), details=True)


def only(found: Summary) -> OfConfiguration:
    (one,) = found.configurations
    return one


def source(folder: Path, name: str, content: bytes | Mapping[str, object]) -> Source:
    """A file of evidence in a folder, and its entry."""
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    (folder / name).write_bytes(data)
    return Source(name, name, sha256(data).hexdigest())


def result(request_id: str, **fields: object) -> dict[str, object]:
    """A full result of a request."""
    counters = {"input_tokens": 100, "cached_input_tokens": 0, "output_tokens": 10, "input_tokens_include_cache": True}
    return {"request_id": request_id, "status": "succeeded", "usage": counters | {"cost_usd": 0.5}} | fields


def record(request_id: str, *, ended: bool = True, **fields: object) -> bytes:
    """A run record: its start line, and its end line where it ended."""
    lines: list[dict[str, object]] = [{"line": "start", "request_id": request_id}]
    if ended:
        lines.append({"line": "end", "request_id": request_id, "status": "succeeded"} | fields)
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)
