"""What each fingerprint sees and misses is measured, and the documentation shows what was measured (CA-7)."""

import os
import re
from pathlib import Path

from tests.evidence.blindness import MISSES, SEES, table, verdicts

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "fingerprints.md"
MARKED = re.compile(r"(?<=<!-- table: tests/evidence/blindness.py -->\n).*?(?=\n<!-- end of table -->)", re.DOTALL)


def test_the_table_of_the_documentation_is_the_measured_one() -> None:
    text = PAGE.read_text(encoding="utf-8")
    if os.environ.get("PARITRACE_UPDATE_GOLDEN") == "1":
        PAGE.write_text(MARKED.sub(lambda _: table(), text), encoding="utf-8")
        text = PAGE.read_text(encoding="utf-8")
    found = MARKED.search(text)
    assert found is not None
    assert found[0] == table()


def test_order_sensitive_fingerprints_see_every_change() -> None:
    for found in verdicts().values():
        assert found["xxh3-64"] == found["mix-u32-le-v1"] == found["indexed-u64"] == SEES


def test_an_xor_alone_misses_most_changes_and_never_more_with_more_regions() -> None:
    rows = verdicts().values()
    missed = [sum(found[f"XOR, {regions}"] == MISSES for found in rows) for regions in ("1 region", "4", "64")]
    assert missed == sorted(missed, reverse=True)
    assert missed[0] > len(rows) / 2


def test_the_element_sum_is_blind_to_order_only() -> None:
    reordered = {
        "two rows swapped",
        "order of heads reversed",
        "rotary halves swapped",
        "sequence shifted by one",
        "square transposed",
        "bfloat16 halves to interleaved",
    }
    assert {name for name, found in verdicts().items() if found["elements-u64"] == MISSES} == reordered
