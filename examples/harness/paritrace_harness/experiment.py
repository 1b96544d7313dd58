"""What an experiment is: the file that a person writes, with its paths made absolute."""

import json
import sys
from pathlib import Path
from typing import Any

from paritrace_harness.durable import encoded
from paritrace_harness.journal import ExperimentError

REQUIRED = {"workload", "candidate", "timeout_seconds", "reviewer", "reason"}
KNOWN = {*REQUIRED, "configuration", "steps"}


def read_experiment(path: Path) -> bytes:
    """Return an experiment as it is kept.

    `workload` is that of a request; `cwd` may be relative to the file, and the word `{python}` of `launcher` is the
    interpreter that runs this. `candidate` holds what of `args`, `env` and `script` is another one there.
    """
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ExperimentError(f"{path}: {error}") from None
    if not isinstance(found, dict) or not REQUIRED <= found.keys() <= KNOWN:
        raise ExperimentError(f"{path}: needs {', '.join(sorted(REQUIRED))}; knows also configuration, steps")
    workload: dict[str, Any] = found["workload"]
    workload["cwd"] = str((path.parent / workload["cwd"]).resolve())
    workload["launcher"] = [sys.executable if word == "{python}" else word for word in workload["launcher"]]
    if found.get("configuration"):
        found["configuration"] = str((path.parent / found["configuration"]).resolve())
    return encoded(found)
