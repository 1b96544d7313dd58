"""One import: the tools by name, and how a path is recognised as one tool's (AT-16, AT-22)."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from paritrace.attempts.importers import harbor, inspect, nemo_fabric, records, swebench, terminal_bench
from paritrace.attempts.importers.collecting import Collecting, Imported, Named
from paritrace.attempts.importers.inspect_logs import SUFFIXES, is_inspect_log
from paritrace.attempts.importers.reading import MOST_FILE_BYTES, Evidence
from paritrace.attempts.importers.terminal_bench_format import LOCK, RESULTS, is_results
from paritrace.errors import EvidenceError, HostError, RequestError
from paritrace.evidence.plain_json import parse
from paritrace.files import LOCAL

MOST_LOOKED_AT = 200  # entries of a folder that are looked at to tell whose it is


class Tool(Struct, frozen=True):
    """A tool whose results are read, and what is named on the command line for it."""

    name: str
    reads: str
    collect: Callable[[Named, Collecting], None]


TOOLS = {
    tool.name: tool
    for tool in (
        Tool("inspect", "Inspect logs, .eval or .json: files, or folders of them", inspect.collect),
        Tool("harbor", "Harbor jobs: folders with lock.json, and trials below them", harbor.collect),
        Tool("swebench", "SWE-bench run reports: files, or folders of them", swebench.collect),
        Tool("terminal-bench", "terminal-bench runs: folders with results.json or tb.lock", terminal_bench.collect),
        Tool("nemo-fabric", "NeMo Fabric results: files, or folders of them", nemo_fabric.collect),
        Tool("records", "run records: run-record.jsonl, or folders above them", records.collect),
    )
}

MOST_NAME = 1024  # as a manifest takes an id


def import_attempts(tool: str, paths: Sequence[Path], *, base: Path, configurations: Sequence[str] = ()) -> Imported:
    """Returns the manifest of what a tool left at some paths, each path one configuration.

    Args:
        base: the folder that the manifest's paths are relative to: its own.
        configurations: names for the paths, in their order; without them a path's own name without its suffix.

    Raises:
        RequestError: Refused: `unknown_tool`, `not_found`, `configuration_names` when they do not fit the paths.
        EvidenceError: Refused: `nothing_to_import`, `not_a_job`.
        HostError: Refused: a folder cannot be listed.
    """
    if tool not in TOOLS:
        raise RequestError(
            f"{tool} is no tool that can be imported", code="unknown_tool", fix="one of: " + ", ".join(TOOLS)
        )
    collecting = Collecting(Evidence(base), importer=tool)
    for named in _named(paths, configurations):
        TOOLS[tool].collect(named, collecting)
    return collecting.finished()


def _named(paths: Sequence[Path], configurations: Sequence[str]) -> list[Named]:
    names = list(configurations) or [_own_name(path) for path in paths]
    holds = all(1 <= len(name) <= MOST_NAME for name in names)
    if not holds or len(names) != len(paths) or len(set(names)) != len(names):
        raise RequestError(
            f"names for {len(paths)} of PATH: {', '.join(repr(name[:80]) for name in names) or 'none'}",
            code="configuration_names",
            fix=f"give --configuration NAME once for each path, all different, of 1 to {MOST_NAME:,} characters",
        )
    return [Named(path=path, configuration=name) for path, name in zip(paths, names, strict=True)]


def _own_name(path: Path) -> str:
    resolved = Path(os.path.realpath(path))
    return resolved.stem if path.is_file() else resolved.name


def tool_of(path: Path) -> str | None:
    """Returns whose results lie at a path, None where that is nobody's that we know. Never raises for bad content."""
    try:
        return _tool_of(path)
    except (HostError, EvidenceError):
        return None


def _tool_of(path: Path) -> str | None:
    if path.is_file():
        return _of_file(path)
    if not path.is_dir():
        return None
    if (path / LOCK).is_file() or ((path / RESULTS).is_file() and _of_file(path / RESULTS) == "terminal-bench"):
        return "terminal-bench"
    if harbor.is_job(path):
        return "harbor"
    entries = LOCAL.list_all(path)[:MOST_LOOKED_AT]
    found = (_of_file(entry) if entry.is_file() else _below(entry) for entry in entries)
    return next((one for one in found if one is not None), None)


def _below(folder: Path) -> str | None:
    if folder.name in (".paritrace", ".fabric"):
        return "records"
    return "terminal-bench" if any((folder / name).is_file() for name in (RESULTS, LOCK)) else None


def _of_file(path: Path) -> str | None:
    if path.name == records.RECORD:
        return "records"
    if path.suffix == ".eval":
        return "inspect"
    if path.suffix not in SUFFIXES or LOCAL.size(path) > MOST_FILE_BYTES:
        return None
    value = parse(LOCAL.read(path), path=path.name).value
    looks = (
        ("inspect", is_inspect_log),
        ("terminal-bench", is_results),
        ("swebench", swebench.is_report),
        ("nemo-fabric", nemo_fabric.is_result),
    )
    return next((name for name, fits in looks if fits(value)), None)
