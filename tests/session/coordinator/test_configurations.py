"""Configurations kept by revision, and what a generation begins with (SE-20, SE-26, SE-33)."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from paritrace.errors import HostError
from paritrace.files import Files
from paritrace.session.bounds import bounds_with
from paritrace.session.commands import Command, Kind
from paritrace.session.configuration import KeptConfig, Setting, Source
from paritrace.session.coordinator.beginnings import Beginnings
from paritrace.session.coordinator.configurations import AGAIN_SECONDS, Configurations, with_scheduled
from paritrace.session.coordinator.generations import Started
from paritrace.session.coordinator.opening_request import Opening
from paritrace.session.coordinator_events import StartRanks
from paritrace.session.coordinator_machine import began
from paritrace.testing.clocks import ManualClock
from tests.session.coordinator.test_books import FullDisk


def document(**requested: Any) -> dict[str, Any]:
    settings = [{"name": name, "value": value, "requested": value} for name, value in requested.items()]
    return {"config": {"settings": [*settings, {"name": "width", "value": 4}]}}


def test_se26_a_revision_is_written_once_and_names_itself(tmp_path: Path) -> None:
    kept = Configurations(tmp_path, {})
    kept.keep(3, document(rate=1.0))
    kept.keep(3, document(rate=2.0))
    written = json.loads((tmp_path / "configs" / "3.json").read_text())
    assert (written["revision"], written["settings"][0]["value"]) == (3, 1.0)
    assert kept.last_requested(3) == {"rate": 1.0}
    assert kept.last_requested(4) is None


@pytest.mark.parametrize("facts", [{}, {"config": 3}, {"config": {"values": {"rate": 5.0}}}])
def test_se26_nothing_is_written_where_nothing_has_a_source(tmp_path: Path, facts: dict[str, Any]) -> None:
    kept = Configurations(tmp_path, {"rate": 1.0})
    kept.keep(1, facts)
    assert list(tmp_path.iterdir()) == []


def begun(directory: Path, *, revision: int, **config: Any) -> tuple[Beginnings, Started]:
    opening = Opening(str(directory), "m:C", config=config, start_from="latest")
    beginnings = Beginnings(opening, Configurations(directory, config), revision=revision)
    machine = began(world_size=1, generation=4, bounds=bounds_with({}), config_revision=beginnings.first_revision)
    return beginnings, beginnings.of(StartRanks(4, {}), machine)


def test_se26_a_directory_that_is_opened_again_goes_on_under_its_last_request(tmp_path: Path) -> None:
    assert begun(tmp_path, revision=0, rate=2.0)[1] == Started(4, {"rate": 2.0}, 0, "latest", None)
    Configurations(tmp_path, {}).keep(7, document(rate=2.0))
    assert begun(tmp_path, revision=7)[1] == Started(4, {"rate": 2.0}, 7, "latest", None)
    assert begun(tmp_path, revision=7, rate=2.0)[1] == Started(4, {"rate": 2.0}, 7, "latest", None)
    assert begun(tmp_path, revision=7, rate=3.0)[1] == Started(4, {"rate": 3.0}, 8, "latest", None)
    Configurations(tmp_path, {}).keep(8, document())
    assert begun(tmp_path, revision=8, rate=3.0)[1] == Started(4, {"rate": 3.0}, 9, "latest", None)


def test_se20_a_generation_after_an_error_has_the_next_revision_and_what_the_command_asks(tmp_path: Path) -> None:
    beginnings, _ = begun(tmp_path, revision=0, rate=2.0, width=4)
    machine = began(world_size=1, generation=4, bounds=bounds_with({}))
    asked = replace(machine, starting=Command("a", Kind.REBUILD))
    assert beginnings.of(StartRanks(5, {"values": {"rate": 9.0}}), asked) == Started(
        5, {"rate": 9.0, "width": 4}, 1, None, None
    )
    assert beginnings.of(StartRanks(6, {"checkpoint": "x", "rebuild": True}), asked) == Started(
        6, {"rate": 2.0, "width": 4}, 1, "x", None
    )
    brings = {"inputs": {"text": "new"}, "tolerate_unknown": True}
    assert beginnings.of(StartRanks(7, brings), asked).inputs_reference == {"text": "new"}
    assert beginnings.of(StartRanks(7, brings), asked).tolerate_unknown
    # the 9.0 never came up: a value that cannot be must not be asked for again and again


def test_se26_a_configuration_that_the_disk_does_not_take_is_shown_and_written_once_there_is_room(
    tmp_path: Path,
) -> None:
    clock, disk = ManualClock(), FullDisk()
    disk.full = True
    kept = Configurations(tmp_path, {}, files=Files(disk), clock=clock)
    with pytest.raises(HostError):
        kept.keep(1, document(rate=1.0))
    assert kept.requested == {"rate": 1.0}
    shown = kept.document(1)
    assert shown is not None
    assert kept.settle() == ()  # not at every turn
    clock.sleep(AGAIN_SECONDS)
    assert kept.settle() == ()
    disk.full = False
    assert kept.settle() == ()
    assert kept.settle(at_once=True) == (1,)
    assert (tmp_path / "configs" / "1.json").read_bytes() == shown == kept.document(1)
    assert kept.settle(at_once=True) == ()


def test_se26_a_value_of_a_schedule_is_shown_as_such_and_kept_nowhere(tmp_path: Path) -> None:
    rate = Setting("rate", 1.0, Source.REQUEST, 0.5, requested=1.0, limits={"minimum": 0})
    data = msgspec.json.encode(KeptConfig((rate, Setting("width", 4, Source.DEFAULT, 4)), 2, revision=7))
    shown = msgspec.json.decode(with_scheduled(data, {"rate": 0.25}), type=KeptConfig)
    assert [(one.name, one.value, one.source) for one in shown.settings] == [
        ("rate", 0.25, Source.SCHEDULE),
        ("width", 4, Source.DEFAULT),
    ]
    assert (shown.settings[0].requested, shown.settings[0].limits, shown.revision) == (1.0, {"minimum": 0}, 7)
