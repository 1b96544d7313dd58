"""Reads the folder of one terminal-bench run: what was planned, and the trials that left results (AT-16).

terminal-bench writes a trial's own `results.json` first and that of the run after each, not atomically: in a run that
was killed the latter is torn, behind, or not there. So trials that only their own file names are taken from there.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from paritrace.attempts.importers.collecting import MOST_PLANNED, Record, typed
from paritrace.attempts.importers.reading import Document, Evidence
from paritrace.attempts.importers.terminal_bench_format import (
    LOCK,
    METADATA,
    RESULTS,
    Lock,
    Metadata,
    Trial,
    is_results,
)
from paritrace.attempts.origins import Origin
from paritrace.evidence.plain_json import elements, members


class Run(Struct, frozen=True):
    """What the files of one run say. `source` is the id of the file that stands for the run as a whole."""

    folder: Path
    lock: Lock | None
    metadata: Metadata | None
    trials: tuple[tuple[Trial, Origin], ...]
    source: str


def runs_at(path: Path, evidence: Evidence) -> list[Run]:
    """Returns the run of a folder or of its `results.json`; of a folder of runs every one.

    Raises:
        HostError: Refused: a folder cannot be listed.
    """
    if path.is_file():
        folders = [path.parent]
    elif is_run(path):
        folders = [path]
    else:
        folders = [entry for entry in evidence.files(path) if entry.is_dir() and is_run(entry)]
    return [run for folder in folders if (run := _run(folder, evidence)) is not None]


def is_run(folder: Path) -> bool:
    """Whether a folder has what terminal-bench writes of a run: at its start, or after its first trial."""
    return (folder / RESULTS).is_file() or (folder / LOCK).is_file()


def planned(run: Run) -> tuple[list[str], int] | None:
    """Returns the planned tasks and how often each; None where neither lock nor metadata name the tasks."""
    if run.lock is not None and run.lock.dataset.task_ids:
        found = run.lock.dataset.task_ids, run.lock.run_config.n_attempts or 1
    elif run.metadata is not None and run.metadata.task_ids:
        found = run.metadata.task_ids, run.metadata.n_attempts or 1
    else:
        return None
    return found if len(found[0]) * found[1] <= MOST_PLANNED else None


def _run(folder: Path, evidence: Evidence) -> Run | None:
    document = evidence.json(folder / RESULTS)
    if document is not None and document.value is not None and not is_results(document.value):
        evidence.refuse(folder / RESULTS, "not terminal-bench results: it has no `results` and `n_resolved`")
        return None
    lock, lock_source = _typed(folder / LOCK, Lock, evidence)
    metadata, _ = _typed(folder / METADATA, Metadata, evidence)
    trials = tuple(_trials(folder, document, evidence))
    if lock is None and not trials and (document is None or document.value is None):
        return None
    source = document.source if document is not None else lock_source
    return Run(folder=folder, lock=lock, metadata=metadata, trials=trials, source=source)


def _typed(path: Path, kind: type[Record], evidence: Evidence) -> tuple[Record | None, str]:
    document = evidence.json(path)
    if document is None or document.value is None:
        return None, "" if document is None else document.source
    return typed(document.value, kind, evidence, Origin(source=document.source)), document.source


def _trials(folder: Path, document: Document | None, evidence: Evidence) -> Iterable[tuple[Trial, Origin]]:
    known: set[str] = set()
    for index, plain in enumerate(elements(members(document.value).get("results")) if document is not None else ()):
        origin = Origin(source=document.source if document is not None else "", pointer=f"/results/{index}")
        trial = typed(plain, Trial, evidence, origin)
        if trial is not None:
            known.add(trial.trial_name)
            yield trial, origin
    for path in _own_results(folder, known, evidence):
        own = evidence.json(path)
        if own is not None and own.value is not None:
            origin = Origin(source=own.source)
            trial = typed(own.value, Trial, evidence, origin)
            if trial is not None and trial.trial_name not in known:
                yield trial, origin


def _own_results(folder: Path, known: set[str], evidence: Evidence) -> Iterator[Path]:
    """The results of trials, RUN/TASK/TRIAL/results.json, that the run's own results do not have."""
    for task in evidence.files(folder):
        if not task.is_dir():
            continue
        for trial in evidence.files(task):
            if trial.is_dir() and trial.name not in known and (trial / RESULTS).is_file():
                yield trial / RESULTS
