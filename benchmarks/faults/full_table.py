"""The result of the full suite as Markdown: docs/generate.py puts it into its page (CP-18)."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

RESULT = Path(__file__).parent / "results" / "placed.json"
MODES = ("plain", "masked", "ranked")
ORDER = ("exact", "adjacent", "undetermined", "missed", "below round-off")


def tables(result: Mapping[str, Any]) -> str:
    """Rates, mechanisms and controls, each in a table; what was missed or claimed is in the file itself."""
    parts = [where(result), rates(result), mechanisms(result), controls(result)]
    return "\n\n".join("\n".join(part) for part in parts)


def result() -> dict[str, Any]:
    """The result that is kept in the repository."""
    kept: dict[str, Any] = json.loads(RESULT.read_text(encoding="utf-8"))
    return kept


def where(result: Mapping[str, Any]) -> Iterator[str]:
    seconds, done, of = result["seconds"], result["num_scored"], result["num_pairs"]
    yield f"Made by `{result['command']}` at commit {', '.join(result['commits'])}, torch {result['torch']}, on a CPU."
    yield f"Scored: {done:,} of {of:,} pairs{'' if done == of else '; the others were not run, and are in no figure'}."
    yield (
        f"Medians: {seconds['capture']} s a capture, {seconds['plain comparison']} s a comparison of"
        f" {seconds['calls of both sides']:,.0f} calls, {seconds['judged comparison']} s where the envelope"
        " judges, on cores that others used too."
    )
    share = seconds["undetermined share of single insertions"]
    if share is not None:
        most = seconds["most undetermined share of single insertions"]
        yield f"Undetermined calls where one operator is inserted: {share:.2%} (median), at most {most:.2%}."


def rates(result: Mapping[str, Any]) -> Iterator[str]:
    yield "| rate | found | of | | 95 % interval |"
    yield "|---|---|---|---|---|"
    for name, (found, total, low, high) in result["rates"].items():
        share = f"{found / total:.1%}" if total else ""
        yield f"| {name} | {found:,} | {total:,} | {share} | {low:.2%} to {high:.2%} |"


def mechanisms(result: Mapping[str, Any]) -> Iterator[str]:
    yield f"| mechanism | what is planted | | {' | '.join(ORDER)} |"
    yield "|---" * (3 + len(ORDER)) + "|"
    for of in result["mechanisms"]:
        for mode in MODES:
            if mode in of:
                cells = " | ".join(str(of[mode].get(answer, "")) for answer in ORDER)
                yield f"| {of['name']} | {of['planted']} | {mode} | {cells} |"


def controls(result: Mapping[str, Any]) -> Iterator[str]:
    yield "| control | pairs | false claims of `compare` | failures of `check` |"
    yield "|---|---|---|---|"
    for of in result["controls"]:
        yield f"| {of['name']} | {of['pairs']} | {of['claimed']} | {of['check_failed']} |"
