"""Which parameters a wrapper keeps alike on all ranks of a group: `DistributedDataParallel` (CP-25)."""

from __future__ import annotations

from typing import Any

from torch.nn.parallel import DistributedDataParallel

from paritrace.capture.pytorch.groups import num_registered
from paritrace.capture.pytorch.registers import Registers
from paritrace.capture.recorder import Recorder
from paritrace.evidence.distributed import Replicated


class Replicas:
    """Says so once for each wrapper in a known root. Replicas of sharded modules need no mark: placements show them."""

    def __init__(self, recorder: Recorder, registers: Registers) -> None:
        self._recorder = recorder
        self._names = registers.names
        self._groups = registers.groups
        self._said: set[Replicated] = set()

    def look(self) -> None:
        """Write what is new since the last look; nothing is asked where no process group exists."""
        if not num_registered():
            return
        for path, module, spelling in self._names.modules():
            if isinstance(module, DistributedDataParallel):
                names, left_out = _parameters(module)
                inside = f"{path}.module." if path else "module."
                mark = Replicated(
                    self._groups.of(module.process_group),
                    tuple(spelling.member(inside + name) for name in names),
                    "ddp",
                    tuple(spelling.member(inside + name) for name in left_out),
                )
                if mark not in self._said:
                    self._said.add(mark)
                    self._recorder.emit(mark)


def _parameters(wrapper: DistributedDataParallel) -> tuple[list[str], list[str]]:
    """The parameters kept alike, those without gradient too, and those that the wrapper was told to ignore.

    What is reduced later, by a hook of its own, stands among torch's ignored ones and is kept alike all the same.
    """
    told: Any = wrapper
    ignored: set[str] = told.parameters_to_ignore
    later = {id(parameter) for parameter in vars(wrapper).get("_delay_all_reduce_params", ())}
    kept: list[str] = []
    left_out: list[str] = []
    for name, parameter in wrapper.module.named_parameters(remove_duplicate=False):
        (left_out if name in ignored and id(parameter) not in later else kept).append(name)
    return kept, left_out
