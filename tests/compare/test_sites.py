"""Call sites of two versions of a file: moved lines correspond, changed ones do not (CP-5, CP-19)."""

from pathlib import Path

from paritrace.compare.result import Unpaired
from paritrace.compare.sites import Lines, site_keys
from paritrace.evidence.calls import Site, SourceKind
from paritrace.evidence.gaps import CaptureGap, Gap
from paritrace.testing.tables import RunTable, batch
from tests.compare.runs import compared, numbers

OLD = "import torch\na = f(x)\nb = f(a)\nc = f(b)"
INSERTED = "import torch\n# a new line\na = f(x)\nb = f(a)\nc = f(b)"
CHANGED = "import torch\na = f(x)\nb = f(a, approximate=True)\nc = f(b)"


def run(source: str, *lines: int) -> RunTable:
    table = RunTable(source=source)
    for line in lines:
        table.op("f", batch(numbers(1)), out=numbers(2), line=line)
    return table


def test_an_inserted_line_unpairs_nothing(tmp_path: Path) -> None:
    found = compared(tmp_path, run(OLD, 2, 3, 4), run(INSERTED, 3, 4, 5))
    assert [(row.line, row.partner) for row in found.rows if row.side == "baseline"] == [(2, 0), (3, 2), (4, 4)]
    (change,) = found.result.changed
    assert (change.kind, change.name) == ("code", "<main>")
    assert "a new line" in change.candidate


def test_equal_numbers_with_other_text_do_not_pair(tmp_path: Path) -> None:
    found = compared(tmp_path, run(OLD, 2, 3, 4), run(CHANGED, 2, 3, 4))
    assert [(row.line, row.partner) for row in found.rows if row.side == "baseline"] == [(2, 0), (3, -1), (4, 4)]
    assert found.result.undetermined_by_reason["baseline"] == {Unpaired.UNEQUAL_BETWEEN_ANCHORS: 1}
    assert found.result.recorded_on_one_side == ()


def site(line: int, digest: str | Gap[CaptureGap], *, column: int = 4, function: str = "main") -> dict[int, Site]:
    return {0: Site(0, SourceKind.WORKLOAD, "model.py", line, column, function, digest)}


def keys(ours: dict[int, Site], theirs: dict[int, Site], sources: dict[str, str]) -> tuple[object, object]:
    found = site_keys(ours, theirs, lines=Lines(sources.get, sources.get))
    return found.baseline[0], found.candidate[0]


def test_columns_count_on_an_unchanged_line() -> None:
    left, right = keys(site(2, "d", column=4), site(2, "d", column=9), {"d": OLD})
    assert left != right


def test_without_sources_the_function_stands_in() -> None:
    left, right = keys(site(2, "old"), site(3, "new"), {})
    assert left == right == ("workload:model.py", "main")


def test_without_digests_the_function_stands_in() -> None:
    gone: Gap[CaptureGap] = Gap(CaptureGap.NOT_COLLECTED)
    left, right = keys(site(2, gone), site(3, gone), {})
    assert left == right
    assert left != keys(site(2, gone, function="other"), site(3, gone), {})[0]


def test_a_moved_line_has_the_key_of_its_old_number() -> None:
    both = {"old": OLD, "new": INSERTED}
    left, right = keys(site(2, "old"), site(3, "new"), both)
    assert left == right == ("workload:model.py", 2, 4)
    assert keys(site(3, "old"), site(3, "new"), both)[0] != right
