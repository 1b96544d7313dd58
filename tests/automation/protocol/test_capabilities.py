"""What an installation and a machine come to, as `capabilities` says it (AU-3)."""

import pytest

from paritrace.automation.probes.probe import Probe, available, unavailable
from paritrace.automation.protocol.actions.capabilities import State, observable

THERE = available("accelerator", "/dev/nvidia0")
ABSENT = unavailable("accelerator", "no device node of an accelerator")


@pytest.mark.parametrize(
    ("versions", "accelerator", "state", "reason"),
    [
        ({"torch": "2.13.0"}, None, State.ENABLED, ""),
        ({"torch": None}, None, State.MISSING, "not installed: torch"),
        ({"torch": None}, THERE, State.MISSING, "not installed: torch"),
        ({"torch": "2.13.0", "triton": None}, THERE, State.MISSING, "not installed: triton"),
        ({"torch": "2.13.0"}, THERE, State.ENABLED, ""),
        ({"torch": "2.13.0"}, ABSENT, State.SUPPORTED, "no device node of an accelerator"),
        ({"torch": "2.13.0+cpu"}, THERE, State.MISSING, "torch is installed in its build for processors alone"),
    ],
)
def test_au3_enabled_supported_and_missing(
    versions: dict[str, str | None], accelerator: Probe | None, state: State, reason: str
) -> None:
    found = observable("x", versions, accelerator=accelerator)
    assert (found.state, found.reason) == (state, reason)
    assert found.versions == {name: version for name, version in versions.items() if version is not None}
