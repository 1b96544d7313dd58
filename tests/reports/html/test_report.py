"""The report is one file: bounded, deterministic, complete in what it says it shows, harmless (SU-7, SU-12, P9)."""

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from resource import RUSAGE_SELF, getrusage
from typing import Any

import pytest
from msgspec.structs import replace

from paritrace.compare.checks_result import Outcome
from paritrace.compare.result import Comparison, Group, Status
from paritrace.compare.rows import CallRow, Side
from paritrace.reports.formats import OfCheck, OfComparison
from paritrace.reports.html import report
from paritrace.reports.html.worst_calls import Choice, kind_of
from tests.reports.call_rows import FULL, differing, row, rows
from tests.reports.comparisons import agreeing, parted
from tests.reports.html.pages import Seen, assert_whole, seen
from tests.reports.html.test_pages import HOSTILE
from tests.reports.test_check_screen import checked, invariant


class Held:
    """A sink that keeps what it is given."""

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes, /) -> object:
        self.data += data
        return len(data)


def written(comparison: Comparison, calls: Any = ()) -> str:
    sink = Held()
    report.comparison(OfComparison(comparison, calls), sink)
    return sink.data.decode()


def data_of(markup: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="calls-data">(.*?)</script>', markup, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def ids(data: dict[str, Any]) -> list[str]:
    return [one[0] for one in data["rows"]]


def many(number: int) -> Iterator[CallRow]:
    """Pairs of both sides; every tenth differs."""
    for side in Side:
        for index in range(number):
            made = row(side, index, partner=index)
            yield replace(made, status=Status.DIFFERENT) if index % 10 == 9 else made


def policy_of(found: Seen) -> str:
    policies = [
        attrs["content"]
        for tag, attrs in found.elements
        if tag == "meta" and attrs.get("http-equiv") == "Content-Security-Policy"
    ]
    assert len(policies) == 1
    return policies[0] or ""


def test_su7_a_report_asks_for_nothing_and_allows_its_own_style_and_script_alone() -> None:
    markup = written(parted(), rows())
    found = assert_whole(markup)
    loaded = [
        attrs
        for tag, attrs in found.elements
        if tag in {"link", "img", "iframe"} or (tag == "script" and "src" in attrs)
    ]
    assert loaded == []
    assert "http" not in re.sub(r"<meta[^>]*>", "", markup)
    policy = policy_of(found)
    assert policy.startswith("default-src 'none'")
    for tag, text in re.findall(r"<(style|script)>(.*?)</(?:style|script)>", markup, re.DOTALL):
        assert b64encode(sha256(text.encode()).digest()).decode() in policy, tag
    assert not [
        attrs for _, attrs in found.elements if "style" in attrs or any(name.startswith("on") for name in attrs)
    ]


def test_p9_every_anchor_and_number_leads_to_its_evidence() -> None:
    found = seen(written(parted(), rows()))
    targets = set(found.ids())
    leading = [attrs["href"] or "" for tag, attrs in found.elements if tag == "a" and "href" in attrs]
    assert {f"#evidence-{name}" for name in ("F1", "counts.paired", "ladder.forward", "not_seen")} <= set(leading)
    assert {one[1:] for one in leading if not one.startswith("#call-")} <= targets
    assert "#call-baseline-0-212" in leading  # opened by the script
    assert "All of them: rows of calls.parquet with" in found.text


def test_su7_a_report_is_the_same_bytes_each_time() -> None:
    assert written(parted(), rows()) == written(parted(), rows())


def test_the_calls_that_findings_name_come_first_then_what_differs_then_what_has_no_partner() -> None:
    data = data_of(written(parted(), rows()))
    assert ids(data) == [
        "baseline:212",
        "baseline:214",
        "candidate:213",
        "candidate:217",
        "candidate:218",
        "baseline:211",
        "baseline:213",
    ]
    assert data["total"] == 7
    assert [one[-1] for one in data["rows"]] == [214, -1, -1, -1, -1, 211, 216]


def test_details_hold_both_sides_neighbours_and_regions() -> None:
    other = replace(FULL, bits="ff" * 8, regions=f"{1:016x}" + FULL.regions[16:])
    calls = [replace(one, slots=(other,)) if one.side is Side.CANDIDATE and one.slots else one for one in rows()]
    data = data_of(written(parted(), calls))
    words = data["words"]
    first = data["details"][0]
    facts = {words[name]: words[text] for name, text in first["facts"]}
    assert facts["paired with"] == "candidate:214 at model/attention.py:41"
    assert facts["before it"].startswith("baseline:211 aten.mm.default")
    assert facts["after it"].startswith("baseline:213 aten.bmm.default")
    lean, full = first["slots"]
    assert words[lean[3]] == "(uninitialised)"
    assert [words[full[3]], words[full[4]]] == ["00112233445566aa", "ff" * 8]
    assert full[5][:2] == ["X===", 4]
    assert full[5][2] == [0, f"{0:016x}", f"{1:016x}"]


def test_su7_many_calls_are_bounded_and_what_is_left_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "MOST_CALLS", 20)
    monkeypatch.setattr(report, "STEPS", (report.Bounds(20, 5, 5),))
    markup = written(parted(), many(300))
    data = data_of(markup)
    assert len(data["rows"]) == 20
    assert ids(data)[:3] == ["baseline:212", "baseline:9", "baseline:19"]  # named by F1, then those that differ
    assert "Showing 20 of 300 pairs and unpaired calls; the rest is in calls.parquet." in seen(markup).text


def test_a_choice_keeps_the_first_of_each_kind_whatever_comes_later() -> None:
    early, late = differing(Side.BASELINE, 1, partner=1), differing(Side.BASELINE, 2, partner=2)
    choice = Choice(most=3)
    choice.take([*(row(Side.BASELINE, number, partner=number) for number in range(10, 15)), early, late])
    assert [one.row.record_id for one in choice.entries] == [1, 2, 10]
    assert choice.total == 7
    assert [kind_of(replace(early, group=group)) for group in (None, Group.PROPAGATES, Group.EXCEEDS)] == [1, 1, 0]


def test_a_pair_is_joined_with_the_candidate_of_its_own_session_only() -> None:
    first = [row(Side.BASELINE, 1, partner=1), row(Side.CANDIDATE, 1, partner=1)]
    second = [replace(one, session_id=f"{one.session_id}.2", line=99) for one in first]
    choice = Choice(most=9)
    choice.take([*first, *second])
    assert [one.partner and one.partner.line for one in choice.entries] == [40, 99]


def test_su12_hostile_names_cannot_end_the_data_or_become_markup() -> None:
    calls = [replace(one, module=HOSTILE, function=HOSTILE, file=HOSTILE, scalars=HOSTILE * 5_000) for one in rows()]
    markup = written(parted(), calls)
    found = assert_whole(markup)
    assert "img" not in {tag for tag, _ in found.elements}
    assert markup.count("</script>") == 2
    data = data_of(markup)
    assert all(text.isprintable() and len(text) <= 240 for text in data["words"])


@pytest.mark.slow
def test_su12_a_report_of_endless_names_stays_under_five_megabytes() -> None:
    text = "\u202e<&\x00" * 30_000
    place = parted().findings[0].place
    slots = tuple(replace(place.slots[0], slot=text, note=text, baseline=text, candidate=text) for _ in range(8))
    place = replace(place, module=text, function=text, cause=text, slots=slots, next_to_see=(text,) * 9)
    findings = tuple(replace(parted().findings[0], id=f"F{n}", sentence=text, place=place) for n in range(1, 101))
    hostile = replace(parted(), findings=findings, first_difference=place)
    calls = [replace(one, module=f"{number}{text}", scalars=text) for number, one in enumerate(many(3_000))]
    markup = written(hostile, calls)
    assert len(markup.encode()) < report.MOST_BYTES
    assert "more; all are in comparison.json" in assert_whole(markup).text


@pytest.mark.slow
def test_su7_a_million_calls_make_a_small_report_in_bounded_memory() -> None:
    slots = tuple(replace(FULL, name=f"out[{number}]") for number in range(4))
    before = getrusage(RUSAGE_SELF).ru_maxrss
    markup = written(agreeing(), (replace(one, slots=slots) for one in many(500_000)))
    grown = (getrusage(RUSAGE_SELF).ru_maxrss - before) * 1024
    assert "Showing 2,000 of 500,000 pairs and unpaired calls" in markup
    assert len(markup.encode()) < report.MOST_BYTES
    assert grown < 200_000_000  # a million rows kept are several times that


def test_cp25_a_check_is_a_file_of_its_own_too() -> None:
    sink = Held()
    report.check(OfCheck(checked(invariant("loss.finite", Outcome.FAIL))), sink)
    found = assert_whole(sink.data.decode())
    assert policy_of(found)
    assert "the loss is not finite" in found.text
