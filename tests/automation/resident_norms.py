"""A workload of one rank whose normalisation can be given another epsilon."""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import nn

from paritrace.session.pytorch import checkpoints
from paritrace.session.pytorch.parts import Parts
from paritrace.session.workload import Accepts, Context, Inspected, Metrics, Refusal


class Norm(nn.Module):
    def __init__(self, eps: float) -> None:
        super().__init__()
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        v = x.pow(2).mean(-1, keepdim=True)
        return x * torch.rsqrt(v + self.eps)


class Norms:
    def __init__(self, eps: float = 1e-6) -> None:
        self._eps = eps
        self._next = 0

    def load(self, ctx: Context) -> None:
        torch.set_num_threads(1)

    def build(self, ctx: Context) -> None:
        torch.manual_seed(0)
        self._model = nn.Sequential(nn.Linear(16, 32), self._norm(), nn.GELU(), nn.Linear(32, 4))
        self._optimizer = torch.optim.SGD(self._model.parameters(), lr=0.1)

    def _norm(self) -> nn.Module:
        return Norm(self._eps)

    def step(self, ctx: Context, n: int) -> Metrics:
        loss = self._model(torch.randn(8, 16)).square().mean()
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()
        self._next = n + 1
        return {"loss": loss.item()}

    def close(self, ctx: Context) -> None:
        """Nothing is held."""

    def save(self, ctx: Context, folder: Path) -> tuple[str, ...]:
        return checkpoints.save(ctx, self._parts(), folder, step=self._next)

    def inspect(self, ctx: Context, folder: Path) -> Inspected | Refusal:
        return checkpoints.inspect(ctx, self._parts(), folder)

    def apply(self, ctx: Context, inspected: Inspected) -> int:
        self._next = checkpoints.apply(self._parts(), inspected)
        return self._next

    def plan_config(self, ctx: Context, changes: Mapping[str, object]) -> Refusal:
        return Refusal(("nothing of it may change",))

    def apply_config(self, ctx: Context, plan: object) -> None:
        """Never reached."""

    def _parts(self) -> Parts:
        return Parts(model=self._model, optimizer=self._optimizer)


class DividingNorm(Norm):
    """The same normalisation by another hand, with another order of rounding."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        v = x.pow(2).mean(-1, keepdim=True)
        return x * (1.0 / torch.sqrt(v + self.eps))


class Dividing(Norms):
    """Another implementation of the same network, which can be put at what the first one saved."""

    def _norm(self) -> nn.Module:
        return DividingNorm(self._eps)

    def accepts(self) -> Accepts:
        return Accepts(workloads=("tests.automation.resident_norms:Norms",))
