"""The training as a workload that stays resident: paused, changed, saved, loaded and driven on (SE-1)."""

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from msgspec import structs

from examples.resident.training import TEXTS, Settings, Training, begin, digest_of, read_text, take_step
from paritrace.session.pytorch import checkpoints
from paritrace.session.pytorch.parts import Parts
from paritrace.session.workload import RUN_BOUNDARY, ConfigField, Context, InputSet, Inspected, Metrics, Plan, Refusal

GROUP_TIMEOUT = timedelta(hours=1)  # the last backstop: who is waited for is known long before (SE-21)
AT_BOUNDARY = ("lr", "weight_decay", "dropout")
FIRST = Settings()
SETTINGS = "settings.json"  # of a checkpoint: what the training was made of


class Workload:
    """One rank of the training. `text`: the name of a text of this folder; `step_seconds` makes every step longer."""

    def __init__(self, text: str = "tides", step_seconds: float = 0.0) -> None:
        self._first_text, self._step_seconds = text, step_seconds
        self._text = self._installed = torch.empty(0)
        self._training: Training | None = None
        self._next = 0  # the first step that has not been taken

    # --- what every workload has

    def load(self, ctx: Context) -> InputSet:
        self._text = read_text(self._first_text)
        return _inputs(self._first_text)

    def build(self, ctx: Context) -> None:
        if not dist.is_initialized():
            dist.init_process_group(
                "gloo", init_method=ctx.store, rank=ctx.rank, world_size=ctx.world_size, timeout=GROUP_TIMEOUT
            )
        self._training, self._next = begin(_settings(ctx.config)), 0

    def step(self, ctx: Context, n: int) -> Metrics:
        training = self._held()
        _take_effect(training, _settings(ctx.config))  # a schedule may have other values for every step
        if self._step_seconds:
            time.sleep(self._step_seconds)
        loss = take_step(training, self._text, n)
        self._next = n + 1
        return {"loss": loss, "lr": training.settings.lr}

    def close(self, ctx: Context) -> None:
        self._training = None
        if dist.is_initialized():
            dist.destroy_process_group()

    # --- configuration

    def config_fields(self) -> tuple[ConfigField, ...]:
        return (
            ConfigField("lr", FIRST.lr, minimum=0.0, maximum=1.0, impact=RUN_BOUNDARY),
            ConfigField("weight_decay", FIRST.weight_decay, minimum=0.0, impact=RUN_BOUNDARY),
            ConfigField("dropout", FIRST.dropout, minimum=0.0, maximum=0.9, impact=RUN_BOUNDARY),
            ConfigField("batch", FIRST.batch, minimum=1),
            ConfigField("batch_per_rank", share_of="batch"),
            ConfigField("length", FIRST.length, minimum=2, maximum=256),
            ConfigField("width", FIRST.width, choices=(32, 64, 128)),
            ConfigField("layers", FIRST.layers, minimum=1, maximum=8),
            ConfigField("heads", FIRST.heads, choices=(1, 2, 4, 8)),
            ConfigField("seed", FIRST.seed, minimum=0),
        )

    def plan_config(self, ctx: Context, changes: Mapping[str, Any]) -> Plan | Refusal:
        return Plan(dict(changes), impact=dict.fromkeys(AT_BOUNDARY, RUN_BOUNDARY))

    def apply_config(self, ctx: Context, plan: Plan) -> None:
        training = self._held()
        known = {name: value for name, value in plan.values.items() if name in AT_BOUNDARY}
        _take_effect(training, replace(training.settings, **known))

    def rebuild(self, ctx: Context, request: Mapping[str, Any]) -> None:
        self.build(ctx)  # inputs stay

    # --- inputs: other text for the same weights

    def prepare_inputs(self, ctx: Context, reference: Mapping[str, Any]) -> InputSet | Refusal:
        known = sorted(path.stem for path in TEXTS.glob("*.txt"))
        name = reference.get("text")
        if set(reference) != {"text"} or name not in known:
            return Refusal((f"a reference is {{'text': one of {', '.join(known)}}}",))
        return _inputs(name)

    def install_inputs(self, ctx: Context, prepared: InputSet) -> None:
        self._installed = read_text(prepared.entries[0]["text"])

    def publish_inputs(self, ctx: Context, prepared: InputSet) -> None:
        self._text = self._installed

    # --- checkpoints

    def save(self, ctx: Context, folder: Path) -> tuple[str, ...]:
        names = checkpoints.save(ctx, self._parts(), folder, step=self._next)
        if ctx.rank != 0:
            return names
        (folder / SETTINGS).write_text(json.dumps(asdict(self._held().settings)))
        return (*names, SETTINGS)

    def inspect(self, ctx: Context, folder: Path) -> Inspected | Refusal:
        found = checkpoints.inspect(ctx, self._parts(), folder)
        if isinstance(found, Refusal):
            return found
        return structs.replace(found, values=json.loads((folder / SETTINGS).read_text()))

    def apply(self, ctx: Context, inspected: Inspected) -> int:
        self._next = checkpoints.apply(self._parts(), inspected)
        return self._next

    def _parts(self) -> Parts:
        training = self._held()
        return Parts(model=training.model, optimizer=training.optimizer)

    # --- a look at what has been learnt

    def preview(self, ctx: Context, folder: Path, options: Mapping[str, Any]) -> Callable[[], tuple[str, ...]]:
        """The likeliest bytes after a prompt. The weights are copied; the writing goes on beside the next steps."""
        prompt, length = str(options.get("prompt", "The sea ")), int(options.get("length", 64))
        training = self._held()
        model = deepcopy(training.model).eval()  # a new one would draw from this rank's random stream

        def written() -> tuple[str, ...]:
            tokens = list(prompt.encode())
            with torch.no_grad():
                for _ in range(length):
                    seen = torch.tensor([tokens[-training.settings.length :]])
                    tokens.append(int(model(seen)[0, -1].argmax()))
            (folder / "sample.txt").write_bytes(bytes(tokens) + b"\n")
            return ("sample.txt",)

        return written

    def state_digest(self, ctx: Context) -> str:
        return digest_of(self._held().model)

    def _held(self) -> Training:
        if self._training is None:
            raise RuntimeError("nothing has been built")
        return self._training


def _settings(config: Mapping[str, Any]) -> Settings:
    return replace(FIRST, **{name: value for name, value in config.items() if name != "batch_per_rank"})


def _take_effect(training: Training, settings: Settings) -> None:
    """What may change between two steps, in the optimizer and in the model."""
    training.settings = settings
    for group in training.optimizer.param_groups:
        group["lr"], group["weight_decay"] = settings.lr, settings.weight_decay
    for module in training.model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = settings.dropout


def _inputs(name: str) -> InputSet:
    path = TEXTS / f"{name}.txt"
    data = path.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    return InputSet(digest, entries=({"text": name, "path": path.name, "size": len(data), "digest": digest},))
