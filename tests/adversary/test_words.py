"""Sentences keep their point whatever a module is called, and no bits are spoken of where none were compared."""

from msgspec.structs import replace

from paritrace.compare.findings import sentence
from paritrace.compare.result import Counts, Mark
from paritrace.reports.first_screen import first_screen
from tests.reports import comparisons


def test_a_long_module_name_does_not_crowd_out_what_is_said() -> None:
    finding = comparisons.parted().findings[0]
    place = replace(finding.place, module="e" * 300 + ".last", region=False, slots=())
    told = sentence(place)
    assert len(told) < 300
    assert "….last" not in told
    assert "eee.last" in told
    assert "gives other outputs" in told


def test_changed_code_without_a_compared_call_speaks_of_no_bits() -> None:
    unseen = dict.fromkeys(comparisons.ladder(), Mark.UNDETERMINED) | {"code": Mark.BEYOND}
    none = replace(comparisons.agreeing(), counts=Counts(10, 0, 0, 0, 0, 0, 10, 0, 0), ladder=unseen)
    text = first_screen(none)
    assert text.startswith("[result]    The runs differ in code; no call was compared.\n")
    assert "bits only" not in text
