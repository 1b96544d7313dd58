"""From the rows of the full suite to its result: counts, rates and times; a pure rule (CP-18, PF-12)."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from benchmarks.faults.intervals import rate

Row = Mapping[str, Any]
MODES = ("plain", "masked", "ranked")
NAMED = ("exact", "adjacent")
BROKEN = "broken"  # the kind of a pair whose workload failed: it is in no figure, and is listed
ANSWERS = ("exact", "adjacent", "undetermined", "missed", "below round-off")
INSERTIONS = frozenset({"keys-scaled", "heads-flipped", "positions-shifted", "activations-rounded", "logits-scaled"})


def result_of(rows: Sequence[Row], *, mechanisms: Mapping[str, str]) -> dict[str, Any]:
    """The document of a run of the suite; the last row of a pair counts, as it was made last."""
    last = {row["id"]: row for row in rows}
    faults = [row for row in last.values() if row["kind"] == "fault"]
    controls = [row for row in last.values() if row["kind"] == "control"]
    return {
        "commits": sorted({row["commit"] for row in last.values()}),
        "num_scored": len(faults) + len(controls),
        "rates": rates(faults, controls),
        "seconds": times([*faults, *controls]),
        "mechanisms": [
            {
                "name": name,
                "planted": told,
                **{mode: counted(faults, name, mode) for mode in MODES if counted(faults, name, mode)},
            }
            for name, told in mechanisms.items()
        ],
        "controls": [of_kind(name, found) for name, found in sorted(grouped(controls).items())],
        "missed": [
            {key: row[key] for key in ("id", "placement", "said")} for row in faults if row["answer"] == "missed"
        ],
        "broken": [{key: row[key] for key in ("id", "said")} for row in last.values() if row["kind"] == BROKEN],
        "claimed": [{key: row[key] for key in ("id", "said", "check_said")} for row in controls if is_claimed(row)],
    }


def grouped(rows: Iterable[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row["name"]].append(row)
    return found


def counted(faults: Iterable[Row], name: str, mode: str) -> dict[str, int]:
    """How often each answer was given; only those that were."""
    counts = Counter(row["answer"] for row in faults if row["name"] == name and row["mode"] == mode)
    return {answer: counts[answer] for answer in ANSWERS if counts[answer]}


def of_kind(name: str, rows: Sequence[Row]) -> dict[str, Any]:
    claimed = sum(row["answer"] != "silent" for row in rows)
    failed = sum(row["check"] != "silent" for row in rows)
    return {"name": name, "pairs": len(rows), "claimed": claimed, "check_failed": failed}


def is_claimed(row: Row) -> bool:
    return bool(row["answer"] != "silent" or row["check"] != "silent")


def rates(faults: Sequence[Row], controls: Sequence[Row]) -> dict[str, list[float]]:
    """Every rate as found, of how many, and its interval."""
    found: dict[str, list[float]] = {}
    for mode in MODES:
        of_mode = [row for row in faults if row["mode"] == mode and row["answer"] != "below round-off"]
        for answer, words in (("exact", NAMED[:1]), ("exact or adjacent", NAMED), ("undetermined", ANSWERS[2:3])):
            hits = sum(row["answer"] in words for row in of_mode)
            found[f"{mode}: {answer}"] = list(rate(hits, total=len(of_mode)))
    asked = [row for row in faults if "check" in row]
    found["ranked: check of the faulty run, exact or adjacent"] = list(
        rate(sum(row["check"] in NAMED for row in asked), total=len(asked))
    )
    found["controls: false claims of compare"] = list(
        rate(sum(row["answer"] != "silent" for row in controls), total=len(controls))
    )
    found["controls: failures of check"] = list(
        rate(sum(row["check"] != "silent" for row in controls), total=len(controls))
    )
    return found


def times(rows: Iterable[Row]) -> dict[str, Any]:
    """Medians: seconds of a capture and of a comparison, calls of both sides, and the undetermined share."""
    every = list(rows)
    inserted = [row for row in every if row["name"] in INSERTIONS and row.get("mode") == "plain"]
    return {
        "capture": middle(row["captured"] for row in every),
        "plain comparison": middle(row["seconds"] for row in every if row.get("mode") != "masked"),
        "judged comparison": middle(row["seconds"] for row in every if row.get("mode") == "masked"),
        "calls of both sides": middle(row["calls"] for row in every),
        "undetermined share of single insertions": middle(row["undetermined"] / row["calls"] for row in inserted),
        "most undetermined share of single insertions": max(
            (row["undetermined"] / row["calls"] for row in inserted), default=None
        ),
    }


def middle(values: Iterable[float]) -> float | None:
    known = list(values)
    return round(median(known), 4) if known else None
