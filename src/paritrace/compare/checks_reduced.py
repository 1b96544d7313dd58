"""Which groups a rank's own code all-reduces the gradient of which parameter over, as the calls show (CP-25, CA-27)."""

from dataclasses import dataclass, field

from paritrace.evidence.calls import Call, Name
from paritrace.evidence.distributed import Collective

ACCUMULATES = "AccumulateGrad:"  # the autograd node that leaves a gradient with its parameter, by the parameter's name
SUMS = frozenset({"sum", "avg"})


@dataclass(slots=True)
class Reduced:
    """Takes the calls of a rank in their order. What a wrapper buckets says itself what it holds, and is not here.

    A gradient that its leaf has just got and an all-reduce takes as it is, is summed over the ranks of the group: that
    makes sense for one parameter that all of them hold, and not for parts of one.
    """

    by_group: dict[int, set[str]] = field(default_factory=dict[int, set[str]])
    _leaves: dict[int, str] = field(default_factory=dict[int, str])  # name id -> parameter
    _gradients: dict[int, str] = field(default_factory=dict[int, str])  # call that left a gradient -> parameter
    _pending: dict[int, int] = field(default_factory=dict[int, int])  # call of an all-reduce -> group

    def see(self, record: Name | Call | Collective) -> None:
        """Takes a record; a collective stands before its call."""
        match record:
            case Name():
                if record.text.startswith(ACCUMULATES):
                    self._leaves[record.id] = record.text.removeprefix(ACCUMULATES)
            case Collective():
                if record.operation == "all_reduce" and record.reduce in SUMS and not record.parameters:
                    self._pending[record.call] = record.group
            case Call():
                self._see_call(record)

    def _see_call(self, call: Call) -> None:
        leaf = self._leaves.get(call.node)
        if leaf is not None:
            self._gradients[call.id] = leaf
        group = self._pending.pop(call.id, None)
        if group is None or len(call.inputs) != 1:
            return
        source = call.inputs[0].source
        name = self._gradients.get(source[0]) if isinstance(source, tuple) else None
        if name:
            self.by_group.setdefault(group, set()).add(name)
