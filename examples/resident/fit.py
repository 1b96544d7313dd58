"""An iterative fit that streams previews: soft discs are moved until they make a picture (SE-10, SE-32)."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from paritrace.session.workload import RUN_BOUNDARY, ConfigField, Context, Metrics, Plan, Refusal

SIZE = 64  # of the picture, in pixels


class Fit:
    """One process, no process group. A preview is the picture as it stands, beside the one that is wanted."""

    def __init__(self) -> None:
        self._wanted = torch.zeros(SIZE, SIZE)
        self._discs = torch.zeros(0, 4)
        self._optimizer: torch.optim.Optimizer = torch.optim.Adam([torch.zeros(1)])

    def load(self, ctx: Context) -> None:
        """The picture that is wanted: a ring and a bar."""
        y, x = _grid()
        ring = ((x - 0.4) ** 2 + (y - 0.5) ** 2).sqrt().sub(0.25).abs() < 0.06
        bar = (x - 0.8).abs() < 0.05
        self._wanted = (ring | bar).float()

    def build(self, ctx: Context) -> None:
        drawn = torch.Generator().manual_seed(ctx.config["seed"])
        discs = torch.rand(ctx.config["discs"], 4, generator=drawn)
        discs[:, 2:] *= torch.tensor([0.1, 0.5])
        self._discs = discs.requires_grad_()
        self._optimizer = torch.optim.Adam([self._discs], lr=ctx.config["lr"])

    def step(self, ctx: Context, n: int) -> Metrics:
        for group in self._optimizer.param_groups:
            group["lr"] = ctx.config["lr"]
        error = (_picture(self._discs) - self._wanted).square().mean()
        self._optimizer.zero_grad()
        error.backward()
        self._optimizer.step()
        return {"error": error.item()}

    def close(self, ctx: Context) -> None:
        self._discs = torch.zeros(0, 4)

    def config_fields(self) -> tuple[ConfigField, ...]:
        return (
            ConfigField("lr", 0.01, minimum=0.0, maximum=1.0, impact=RUN_BOUNDARY),
            ConfigField("discs", 48, minimum=1, maximum=512),
            ConfigField("seed", 0, minimum=0),
        )

    def plan_config(self, ctx: Context, changes: Mapping[str, Any]) -> Plan | Refusal:
        return Plan(dict(changes), impact={"lr": RUN_BOUNDARY})

    def apply_config(self, ctx: Context, plan: Plan) -> None:
        """A step reads the learning rate by itself."""

    def preview(self, ctx: Context, folder: Path, options: Mapping[str, Any]) -> Callable[[], tuple[str, ...]]:
        discs, wanted = self._discs.detach().clone(), self._wanted

        def written() -> tuple[str, ...]:
            both = torch.cat([wanted, _picture(discs).clamp(0, 1)], dim=1)
            grey = (both * 255).round().to(torch.uint8)
            head = f"P5 {grey.shape[1]} {grey.shape[0]} 255\n".encode()  # a portable greymap: any viewer opens it
            (folder / "picture.pgm").write_bytes(head + grey.numpy().tobytes())
            return ("picture.pgm",)

        return written


def _grid() -> tuple[Tensor, Tensor]:
    line = (torch.arange(SIZE) + 0.5) / SIZE
    down, across = torch.meshgrid(line, line, indexing="ij")
    return down, across


def _picture(discs: Tensor) -> Tensor:
    """Discs are rows of x, y, radius, brightness."""
    y, x = _grid()
    away = (x - discs[:, 0, None, None]).square() + (y - discs[:, 1, None, None]).square()
    return (discs[:, 3, None, None] * torch.exp(-away / (2 * discs[:, 2, None, None].square() + 1e-5))).sum(0)
