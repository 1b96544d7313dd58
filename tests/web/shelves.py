"""Runs and comparisons that the tests of the web view look at: written by the product, quick, without torch."""

from pathlib import Path

import numpy as np

from paritrace.compare.engine import compare
from paritrace.files import LOCAL
from paritrace.reports.keeping import Keeping, default_directory, keep
from paritrace.reports.sources import sources_of
from paritrace.runs.reading import open_run
from paritrace.testing.tables import RunTable, Value, batch

SOURCE = "import torch\n\n\ndef step(x):\n    y = scale(x)\n    z = bend(y)\n    return fold(z)\n\n\nstep(batch())\n"
OTHER = SOURCE.replace("import torch\n", "import torch  # another\n")
MARKUP = '<img src=x onerror="document.title=1"><script>document.title=1</script>'
ODD = MARKUP + "\u202egnp\x1b[31m\"'&" + "x" * 10_000
NAMES = ("scale", "bend", "fold")


def write_run(
    place: Path, *, factor: float = 1.0, steps: int = 3, names: tuple[str, str, str] = NAMES, source: str = SOURCE
) -> Path:
    """A run of three calls a step; `factor` changes what the second of them makes."""
    table = RunTable(source=source)
    for number in range(steps):
        given = np.arange(64, dtype=np.float32) + number
        first = table.op(names[0], batch(given), out=Value(given * 2), line=5)
        second = table.op(names[1], first, out=Value(given * np.float32(factor)), line=6, scalars={"dim": "-1"})
        table.op(names[2], second, out=Value(given * np.float32(factor) + 1), line=7)
        table.end_step()
    return table.write(place, expected=f"0:{steps}")


def write_pair(folder: Path, *, names: tuple[str, str, str] = NAMES, steps: int = 3) -> Path:
    """Two runs, A and B, that part at the second call, B with a step less; returns the kept comparison below B."""
    a = write_run(folder / "A", names=names, steps=steps)
    b = write_run(folder / "B", factor=1.5, steps=steps - 1, names=names, source=OTHER)
    return keep_comparison(a, b)


def keep_comparison(a: Path, b: Path, *, formats: tuple[str, ...] = ("parquet", "text", "json")) -> Path:
    """Compare two runs and keep the result where `paritrace compare` does."""
    with open_run(a) as baseline, open_run(b) as candidate:
        compared = compare(baseline, candidate)
        sources = (*sources_of(baseline, side="baseline"), *sources_of(candidate, side="candidate"))
        keeping = Keeping(
            comparison=compared.result, rows=compared.rows, sources=sources, made_by="paritrace 0", formats=formats
        )
        directory = default_directory(keeping)
        keep(keeping, directory, files=LOCAL)
    return directory
