"""The report of an investigation: made of its documents alone, so that making it again gives the same."""

from typing import Any

from paritrace_harness.investigation import Investigation


def report(investigation: Investigation) -> dict[str, Any]:
    """What was found, and the digest of every result behind it."""
    results = {name: investigation.result(name) for name in ("discover", "prepare", "baseline", "candidate")}
    compared, reviewed = investigation.result("compare"), investigation.result("review")
    return {
        "verdict": compared["verdict"],
        "counts": compared["counts"],
        "first_differences": [_place(one) for one in compared["first_differences"]],
        "ranks_missing": compared["ranks_missing"],
        "reviewed": None if "nothing_to_do" in reviewed else reviewed["artifact"]["directory"],
        "digests": {name: result["digest"] for name, result in [*results.items(), ("compare", compared)]},
    }


def _place(one: dict[str, Any]) -> dict[str, Any]:
    return {key: one[key] for key in ("rank", "step", "phase", "function", "file", "line", "difference_class")}


def sentence(found: dict[str, Any]) -> str:
    """The report in lines for a person."""
    lines = [
        f"rank {one['rank']}, step {one['step']}: {one['function']} at {one['file']}:{one['line']}"
        for one in found["first_differences"]
    ]
    return "\n".join(["first differences:", *lines] if lines else ["no difference was found"])
