"""The README's figures come from the measurements' own output."""

from docs.figures import goals_table

RESULTS = """# Measurements

Measured on 2026-01-01: a processor.

## PF-1: fingerprints

| PF-1 | ratio | against | goal | |
|---|---|---|---|---|
| XOR, 64 MiB, R = 1 | 0.95 | speed of a read | >= 0.9 | met |
| xxh3-64, 64 MiB | 0.90 | speed of a read | | |

A note.

## PF-3g

| PF-3g | ratio | against | goal | |
|---|---|---|---|---|
| launches | 0.30 | bare step | <= 0.2 | **missed** |
"""


def test_every_ratio_with_a_goal_is_listed_also_when_it_was_missed() -> None:
    assert goals_table(RESULTS).splitlines() == [
        "Measured on 2026-01-01: a processor.",
        "",
        "| | | ratio | against | goal | |",
        "|---|---|---|---|---|---|",
        "| PF-1 | XOR, 64 MiB, R = 1 | 0.95 | speed of a read | >= 0.9 | met |",
        "| PF-3g | launches | 0.30 | bare step | <= 0.2 | **missed** |",
    ]
