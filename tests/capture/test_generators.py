"""Generators of the workload's own have a name each, and a place in the inventory once they are met (CA-5, CA-29)."""

import torch

from paritrace.capture.definitions import Definitions
from paritrace.capture.pytorch.kinds import Kinds
from paritrace.capture.pytorch.rng import Generators
from paritrace.evidence.calls import Origin
from paritrace.evidence.definition import Definition


class Register:
    """Generators with what they define, by hand."""

    def __init__(self) -> None:
        self.records: list[Definition] = []
        self.generators = Generators()
        self._kinds, self._definitions = Kinds(self.records.append), Definitions(self.records.append)

    def name(self, generator: object) -> str:
        slot = self.generators.slot(generator, self._kinds, self._definitions)
        origins = {record.id: record.name for record in self.records if isinstance(record, Origin)}
        assert isinstance(slot.source, int)
        return origins[slot.source]


def test_each_generator_keeps_its_name() -> None:
    register = Register()
    first, second = torch.Generator(), torch.Generator()
    assert register.name(None) == "torch_cpu"
    assert register.name(torch.default_generator) == "torch_cpu"
    assert [register.name(g) for g in (first, second, first)] == [
        "generator:cpu#1",
        "generator:cpu#2",
        "generator:cpu#1",
    ]


def test_a_generator_that_is_gone_leaves_its_number_behind() -> None:
    register = Register()
    names = [register.name(torch.Generator()) for _ in range(50)]  # a sampler makes one for each epoch
    assert len(set(names)) == 50


def test_those_met_are_in_the_inventory_and_drawing_changes_their_state() -> None:
    register = Register()
    own = torch.Generator().manual_seed(3)
    assert "generator:cpu#1" not in dict(register.generators.states())
    register.name(own)
    before = dict(register.generators.states())
    torch.rand(3, generator=own)
    after = dict(register.generators.states())
    assert before["generator:cpu#1"] != after["generator:cpu#1"]
    assert before["torch_cpu"] == after["torch_cpu"], "reading draws nothing"
