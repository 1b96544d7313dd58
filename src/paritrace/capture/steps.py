"""Which step, micro-batch and phase a call belongs to: a rule that hears of events and holds no clock (CA-3).

A step is a training step. It ends lazily: an optimizer step makes the end *due*, and the next of these ends it: a
root module's forward, a backward, an operator called with gradients on, or an optimizer that already stepped in this
step. So two optimizers of one step (Muon beside AdamW) stay in it. `paritrace.step(n)` names the step outright, and
from then on only it does.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from paritrace.evidence.calls import Phase


@dataclass
class Steps:
    """State of the step machine; every method says whether a step has just ended."""

    step: int = 0
    due: bool = False
    named: bool = False  # the user names the steps
    named_microbatch: int | None = None  # the user names the micro-batch
    backwards: int = 0  # backward passes finished in this step: the micro-batch of the next forward
    optimizer_steps: int = 0
    optimizer_depth: int = 0
    backward_depth: int = 0
    stepped: set[int] = field(default_factory=set[int])

    @property
    def microbatch(self) -> int:
        """Index of the forward-backward pair within the step; the optimizer belongs to the last one."""
        if self.named_microbatch is not None:
            return self.named_microbatch
        if self.backward_depth or (self.optimizer_depth and self.backwards):
            return max(self.backwards - (0 if self.backward_depth else 1), 0)
        return self.backwards if not self.due else max(self.backwards - 1, 0)

    def phase(self, *, in_module: bool) -> Phase:
        """The phase of a call made now; `in_module` says that a module's forward is on the stack."""
        if self.backward_depth:
            return Phase.BACKWARD
        if self.optimizer_depth and not in_module:
            return Phase.OPTIMIZER
        return Phase.FORWARD

    def ends_before_forward(self) -> bool:
        """A root module's forward, a backward or an operator with gradients begins: does it open a new step?"""
        return self.due and not self.named and not self.optimizer_depth

    def ends_before_optimizer(self, optimizer: int) -> bool:
        """This optimizer is about to step: has it already stepped in this step?"""
        return self.due and not self.named and optimizer in self.stepped

    def advance(self, to: int | None = None) -> None:
        """Open the next step, or the named one."""
        self.step = self.step + 1 if to is None else to
        self.due = False
        self.backwards = 0
        self.optimizer_steps = 0
        self.stepped.clear()

    def optimizer_begins(self) -> None:
        self.optimizer_depth += 1

    def optimizer_ended(self, optimizer: int) -> None:
        self.optimizer_depth = max(self.optimizer_depth - 1, 0)
        self.optimizer_steps += 1
        self.stepped.add(optimizer)
        self.due = True

    def optimizer_skipped(self, optimizer: int) -> None:
        """A grad scaler left this optimizer's step out: the training step ends as if it had been made."""
        self.stepped.add(optimizer)
        self.due = True

    def optimizers_running(self, number: int) -> None:
        """So many optimizers are stepping. Fewer than began: one raised, and torch tells nobody that it ended."""
        self.optimizer_depth = min(self.optimizer_depth, number)

    def backward_begins(self) -> None:
        self.backward_depth += 1

    def backward_ended(self) -> None:
        self.backward_depth = max(self.backward_depth - 1, 0)
        if not self.backward_depth:
            self.backwards += 1
