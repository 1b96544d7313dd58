"""`paritrace-harness FOLDER --experiment FILE`: carry out an investigation, or go on with it."""

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from paritrace_harness.durable import encoded, replace
from paritrace_harness.experiment import read_experiment
from paritrace_harness.investigation import Investigation, StageError
from paritrace_harness.journal import ExperimentError, Journal
from paritrace_harness.report import report, sentence
from paritrace_harness.stages import STAGES

FAILED = 1


def main(arguments: Sequence[str] | None = None, *, write: Callable[[int, bytes], int] = os.write) -> int:
    """Carry out what is not done yet. Exit status 1: something is to be looked at, and was said on standard error."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="of the experiment; the same command goes on after a kill")
    parser.add_argument("--experiment", type=Path, help="needed the first time")
    parser.add_argument("--stage", choices=STAGES, help="this one alone")
    parser.add_argument("--tools", default=f"{sys.executable} -m paritrace.automation", help="[%(default)s]")
    options = parser.parse_args(arguments)
    folder = options.folder.absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        journal = Journal(folder / "journal.jsonl", write=write)
        experiment = _kept(folder, options.experiment)
        investigation = Investigation(folder, journal, experiment, tools=shlex.split(options.tools))
        for name in [options.stage] if options.stage else STAGES:
            print(investigation.run(name), flush=True)
        if options.stage is None:
            found = report(investigation)
            replace(folder / "report.json", encoded(found))
            print(sentence(found))
    except (ExperimentError, StageError) as error:
        print(error, file=sys.stderr)
        return FAILED
    return 0


def _kept(folder: Path, given: Path | None) -> bytes:
    """The experiment of the folder; one that is given must be the same, and is kept the first time."""
    path = folder / "experiment.json"
    kept = path.read_bytes() if path.exists() else None
    asked = read_experiment(given) if given is not None else kept
    if asked is None:
        raise ExperimentError(f"{folder} holds no experiment: give --experiment FILE")
    if kept is None:
        replace(path, asked)
    elif kept != asked:
        raise ExperimentError(f"{folder} holds another experiment; a changed one takes a new folder")
    return asked


if __name__ == "__main__":
    sys.exit(main())
