"""The figures of the README and of the planted faults' pages: taken from what measurements wrote, never typed in."""

import re
from pathlib import Path

from benchmarks.faults.full_table import result, tables
from benchmarks.faults.peers.table import KEPT, by_pair, read, table

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results.md"
SAME_BITS = tuple(ROOT / "benchmarks" / name for name in ("same_bits.md", "same_bits_ranked.md"))

_MARKED = re.compile(r"<!-- (?P<name>measurements|same bits): made by make docs -->\n.*?<!-- end -->\n", re.DOTALL)
_PLACED = re.compile(r"<!-- placed: made by make docs -->\n.*?<!-- end -->\n", re.DOTALL)
_PEERS = re.compile(r"<!-- peers: made by make docs -->\n.*?<!-- end -->\n", re.DOTALL)
_TABLE_HEAD = re.compile(r"^\| (PF-\w+) \| ratio \|")


def with_figures(readme: str) -> str:
    """The README with each marked part made anew."""
    return _MARKED.sub(lambda found: f"{_opening(found['name'])}\n\n{_part(found['name'])}\n\n<!-- end -->\n", readme)


def with_placed(page: str) -> str:
    """The page of the planted faults with the tables of the full suite made anew."""
    return _PLACED.sub(lambda _: f"{_opening('placed')}\n\n{tables(result())}\n\n<!-- end -->\n", page)


def with_peers(page: str) -> str:
    """The page of other tools with its tables made anew."""
    found = read(KEPT)
    text = f"{_opening('peers')}\n\n{table(found)}\n\n{by_pair(found)}\n\n<!-- end -->\n"
    return _PEERS.sub(lambda _: text, page)


def _opening(name: str) -> str:
    return f"<!-- {name}: made by make docs -->"


def _part(name: str) -> str:
    if name == "measurements":
        return goals_table(RESULTS.read_text(encoding="utf-8"))
    return "\n\n".join(path.read_text(encoding="utf-8").strip() for path in SAME_BITS)


def goals_table(results: str) -> str:
    """Every measured ratio that has a goal, in one table, under the lines that say where they were measured."""
    rows: list[str] = []
    figure = ""
    for line in results.splitlines():
        head = _TABLE_HEAD.match(line)
        figure = head[1] if head else figure
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if head is None and line.startswith("| ") and len(cells) == 5 and cells[3]:
            rows.append(f"| {figure} | {' | '.join(cells)} |")
    where = [line for line in results.splitlines() if line.startswith(("Measured on ", "Measured anew, "))]
    return "\n".join(["\n\n".join(where), "", "| | | ratio | against | goal | |", "|---|---|---|---|---|---|", *rows])
