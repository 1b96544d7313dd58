"""Writes the result of the full suite where the docs take it from; its rows stay where they were made (CP-18)."""

import json
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.faults.placed_suite import MECHANISMS
from benchmarks.faults.ranked_faults import RANKED_FAULTS
from benchmarks.faults.tally import result_of


def write_result(rows: Sequence[Mapping[str, Any]], path: Path, *, command: str, num_pairs: int) -> None:
    """One JSON document: what was run, how much of it, on what, and what came out."""
    mechanisms = {one.name: one.mechanism for one in MECHANISMS} | {one.name: one.mechanism for one in RANKED_FAULTS}
    found = result_of(rows, mechanisms=mechanisms)
    head = {"command": command, "num_pairs": num_pairs, "torch": version("torch"), "machine": platform.machine()}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**head, **found}, indent=1) + "\n", encoding="utf-8")
