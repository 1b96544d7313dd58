"""Extras are known from the package's own metadata, with the exact command that installs a missing one (SU-5)."""

from paritrace.automation.probes.installation import packages_by_extra, probe_extra
from paritrace.automation.probes.probe import Availability


def test_packages_by_extra() -> None:
    lines = ["click>=8.1.7", "torch>=2.6; extra == 'torch'", 'a-b[c]>=1; extra == "web"', "d; extra == 'web'", "e; x"]
    assert packages_by_extra(lines) == {"torch": ["torch"], "web": ["a-b", "d"]}


def test_missing_extra_names_the_command() -> None:
    probe = probe_extra("web", ["click", "a-distribution-nobody-has"])
    assert probe.status is Availability.UNAVAILABLE
    assert probe.reason == "not installed: a-distribution-nobody-has"
    assert probe.fix == 'pip install "paritrace[web]"'


def test_present_extra_names_versions() -> None:
    probe = probe_extra("x", ["click"])
    assert probe.status is Availability.AVAILABLE
    assert probe.value.startswith("click 8.")
