"""torch's own DebugMode: both runs in one process, `check_hash_mismatches` on their logs.

The tool names an operator and no place. The suite reads the place from the first log entry whose hashes differ, which
a user would have to do as well; both hashes that the tool offers are logged.
"""

import re
from typing import Any

from torch.utils._debug_mode import DebugMode
from workload_runs import frames_in, train

FRAME = re.compile(r'File "([^"]+)", line (\d+)')


def first_difference(job: dict[str, Any]) -> dict[str, Any]:
    left, right = (logged(job[side]) for side in ("baseline", "candidate"))
    found = DebugMode.check_hash_mismatches(left[0], right[0])
    if not found:
        return {}
    at = next(n for n, pair in enumerate(zip(left[0], right[0], strict=True)) if hashes(pair[0]) != hashes(pair[1]))
    call = right[0][at]
    return {
        "name": str(found[0]["call"]),
        "step": sum(mark <= at for mark in right[1]),
        "phase": "backward" if call.fwd_stack_trace else "forward",
        "frames": frames_in(job["candidate"]["script"], stack(call.fwd_stack_trace or call.stack_trace or "")),
    }


def logged(side: dict[str, Any]) -> tuple[list[Any], list[int]]:
    """The log of one run, and how long it was at the end of each step."""
    marks: list[int] = []
    with (
        DebugMode(record_stack_trace=True, record_output=False) as mode,
        DebugMode.log_tensor_hashes(["norm", "hash_tensor"]),
    ):
        train(side, after_step=lambda: marks.append(len(mode.logs)))
        return list(mode.logs), marks


def hashes(call: Any) -> str:
    return repr((getattr(call, "log", None) or {}).get("hash"))


def stack(text: str) -> list[tuple[str, int]]:
    """Frames of a printed stack, the innermost first."""
    return [(file, int(line)) for file, line in reversed(FRAME.findall(text))]
