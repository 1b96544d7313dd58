"""What a rank does while it is disturbed: all-reduce after all-reduce, or one native call that hears no signal."""

import hashlib
import os
import signal
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import Any

import torch
import torch.distributed as dist

from paritrace.session.workload import Context, Metrics, Plan, Refusal

NATIVE_ROUNDS = 2_000_000_000  # of a key derivation: some ten minutes in one call
GROUP_TIMEOUT = timedelta(minutes=10)
COLLECTIVE, NATIVE, PLAIN = "collective", "native", "plain"


def one_step(what: str, *, rank: int, seconds: float) -> None:
    """One step; in `native` rank 0 goes into one long call, and rank 1 sleeps, so that it can be killed beside it."""
    if what == COLLECTIVE:
        dist.all_reduce(torch.ones(1024))
    elif what == NATIVE and rank == 0:
        hashlib.pbkdf2_hmac("sha256", b"", b"", NATIVE_ROUNDS)
    if seconds >= 0:
        time.sleep(seconds)


def begin_group(what: str, *, rank: int, world_size: int, store: str) -> None:
    """The process group where steps need one; beside native code a handler for SIGTERM, as scripts have."""
    if what == NATIVE:
        signal.signal(signal.SIGTERM, _heard)
    elif what == COLLECTIVE:
        dist.init_process_group("gloo", init_method=store, rank=rank, world_size=world_size, timeout=GROUP_TIMEOUT)


def _heard(_number: int, _frame: FrameType | None) -> None:
    """A handler that lets the process live."""


class Load:
    """The same as a resident workload. `folder`: every rank writes its process number there once it steps.

    `seconds` below 0: a step does not even sleep.
    """

    def __init__(self, folder: str, what: str = PLAIN, seconds: float = 0.0) -> None:
        self._folder, self._what, self._seconds = Path(folder), what, seconds
        self._said = False

    def says_nothing(self) -> None:
        """Leave out the process number: for a loop without ranks."""
        self._said = True

    def load(self, ctx: Context) -> None:
        """Nothing to read."""

    def build(self, ctx: Context) -> None:
        begin_group(self._what, rank=ctx.rank, world_size=ctx.world_size, store=ctx.store)

    def step(self, ctx: Context, n: int) -> Metrics:
        if not self._said:
            say_pid(self._folder, rank=ctx.rank)
            self._said = True
        one_step(self._what, rank=ctx.rank, seconds=self._seconds)
        return {"n": n}

    def plan_config(self, ctx: Context, changes: Mapping[str, Any]) -> Plan | Refusal:
        return Plan(dict(changes), impact=dict.fromkeys(changes, "run"))

    def apply_config(self, ctx: Context, plan: Plan) -> None:
        """Nothing depends on it."""

    def close(self, ctx: Context) -> None:
        if dist.is_initialized():
            dist.destroy_process_group()


def say_pid(folder: Path, *, rank: int) -> None:
    """Write this process's number, whole or not at all."""
    hidden = folder / f".{rank}"
    hidden.write_text(str(os.getpid()), encoding="ascii")
    hidden.rename(folder / f"{rank}.pid")
