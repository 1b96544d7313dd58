"""Two small runs whose pairs want a review, compared and kept; and maps of that result (CP-14)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow.parquet as pq

from paritrace.compare.engine import compare
from paritrace.evidence.digests import sha256_hex
from paritrace.files import LOCAL
from paritrace.reports.keeping import Keeping, keep
from paritrace.reports.sources import sources_of
from paritrace.runs.reading import open_run
from paritrace.testing.tables import Array, RunTable, Value, batch
from tests.compare.runs import numbers

# Record ids, by the order of entering and leaving.
WHOLE, PART_A, PART_B, NARROW, REST = 0, 2, 4, 6, 8  # modules; the last one of the candidate alone
F, G = (8, 10), 12  # operators of the baseline
THEIR_F, THEIR_G = (10, 12, 14), 16  # and of the candidate


def bf16(array: Array) -> Value:
    """The upper halves of float32 numbers, as bfloat16."""
    return Value((array.view(np.uint32) >> 16).astype(np.uint16), "bfloat16")


def table(*, calls_of_f: int, changed: float = 1.0, parts: bool = False) -> RunTable:
    """Modules with a whole or its parts; `f` as often as asked, with inputs that match nothing; `g` once."""
    made = RunTable(source="\n".join(f"line {number}" for number in range(20)))
    whole = numbers(5, 8, 16)
    given = batch(numbers(1))
    outs: dict[str, Any] = {"whole": whole, "part_a": whole[:3], "part_b": whole[3:], "narrow": bf16(numbers(6, 9))}
    if parts:
        outs |= {"narrow": bf16(numbers(6, 9)[:5]), "rest": bf16(numbers(6, 9)[5:])}
    for name, out in outs.items():
        made.enter(name, "M").leave(given, out=out, line=1)
    for number in range(calls_of_f):
        seed = 100 * calls_of_f + number
        made.op("f", batch(numbers(seed)), out=numbers(700 + number), line=3)
    made.op("g", batch(numbers(1)), out=numbers(9) * np.float32(changed), line=4, scalars={"dim": "-1"})
    made.end_step()
    return made


def artifact(place: Path, *, changed: float = 1.5) -> Path:
    """A kept comparison: two calls of `f` against three, `g` differs by `changed`; runs of two ranks."""
    for rank in (0, 1):
        table(calls_of_f=2).write(place / "A", rank=rank, world_size=2)
        table(calls_of_f=3, changed=changed, parts=True).write(place / "B", rank=rank, world_size=2)
    with open_run(place / "A") as a, open_run(place / "B") as b:
        compared = compare(a, b)
        sources = (*sources_of(a, side="baseline"), *sources_of(b, side="candidate"))
        keeping = Keeping(comparison=compared.result, rows=compared.rows, sources=sources, made_by="paritrace 0")
        keep(keeping, place / "kept", files=LOCAL)
    return place / "kept"


def digest_of(artifact: Path) -> str:
    return sha256_hex((artifact / "manifest.json").read_bytes())


def write_map(path: Path, artifact: Path, **more: Any) -> Path:
    """A map with its head filled in; `more` replaces keys of it, None leaves one out."""
    head: dict[str, Any] = {
        "format": "paritrace-alignment-map",
        "version": "1.0",
        "artifact_sha256": digest_of(artifact),
        "reviewer": "Ada",
        "reason": "read both sources",
    }
    document = {key: value for key, value in (head | more).items() if value is not None}
    path.write_bytes(msgspec.json.encode(document))
    return path


def rows_of(folder: Path) -> dict[tuple[str, int, int], Mapping[str, Any]]:
    """Every row of calls.parquet by side, rank and record id."""
    rows = pq.read_table(folder / "calls.parquet").to_pylist()
    return {(row["side"], row["rank"], row["record_id"]): row for row in rows}


def pair(decision: str, baseline: int | str, candidate: int | str, **more: Any) -> dict[str, Any]:
    return {"decision": decision, "rank": 0, "baseline": baseline, "candidate": candidate, **more}


def slot(record: int, *, rank: int = 0, direction: str = "o", name: str = "out[0]") -> dict[str, Any]:
    return {"rank": rank, "record": record, "direction": direction, "slot": name}
