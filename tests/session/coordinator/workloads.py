"""A small workload without torch, which pauses, hangs or fails where a test wants it to."""

import ctypes
import os
import signal
import time
from pathlib import Path

from paritrace.session.workload import RUN_BOUNDARY, ConfigField, Context, InputSet, Metrics, Plan, Refusal


class Small:
    """`hang_at`: this step waits until the file `release` is there; `fail_at`: this step raises; `native_at`: in this
    step rank 1 does not come back from native code, holds the interpreter's lock there, and ignores SIGTERM;
    `closes_at`: in this step rank 1 closes every descriptor that it has, our own among them."""

    def __init__(
        self,
        pause: float = 0.001,
        hang_at: int = -1,
        release: str = "",
        fail_at: int = -1,
        fail_build: bool = False,
        native_at: int = -1,
        closes_at: int = -1,
    ) -> None:
        self._pause = pause
        self._hang_at = hang_at
        self._release = release
        self._fail_at = fail_at
        self._fail_build = fail_build
        self._native_at = native_at
        self._closes_at = closes_at
        self.total = 0.0

    def config_fields(self) -> tuple[ConfigField, ...]:
        return (ConfigField("rate", default=1.0, minimum=0.0, impact=RUN_BOUNDARY), ConfigField("width", default=4))

    def load(self, ctx: Context) -> InputSet:
        ctx.progress("loading", 1, 1, "file")
        return InputSet("digest-of-first", payload="first")

    def prepare_inputs(self, ctx: Context, reference: dict[str, str]) -> InputSet | Refusal:
        text = reference.get("text", "")
        return InputSet(f"digest-of-{text}", payload=text) if text else Refusal(("no text was named",))

    def install_inputs(self, ctx: Context, prepared: InputSet) -> None:
        pass

    def publish_inputs(self, ctx: Context, prepared: InputSet) -> None:
        pass

    def build(self, ctx: Context) -> None:
        if self._fail_build:
            raise RuntimeError("no such device")

    def step(self, ctx: Context, n: int) -> Metrics:
        deadline = time.monotonic() + 60
        while n == self._hang_at and not Path(self._release).exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        if n == self._native_at and ctx.rank == 1:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            while True:  # a signal ends a sleep
                ctypes.PyDLL(None).sleep(600)
        if n == self._closes_at and ctx.rank == 1:
            os.closerange(3, 4096)
        if n == self._fail_at:
            raise ValueError(f"step {n} fails")
        time.sleep(self._pause)
        self.total += float(ctx.config["rate"])
        return {"total": self.total}

    def plan_config(self, ctx: Context, changes: dict[str, object]) -> Plan | Refusal:
        return Plan(values=changes, impact={"rate": RUN_BOUNDARY})

    def apply_config(self, ctx: Context, plan: Plan) -> None:
        pass

    def state_digest(self, ctx: Context) -> str:
        return f"{self.total:.6f}"

    def close(self, ctx: Context) -> None:
        pass


SMALL = "tests.session.coordinator.workloads:Small"
