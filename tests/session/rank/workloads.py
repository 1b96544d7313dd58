"""Small workloads without torch, for ranks that are driven by hand."""

import threading
from typing import Any, ClassVar

from paritrace.session.workload import Context, Metrics


class Counting:
    """Adds what its configuration says, step after step; tells everybody who asks what was called."""

    made: ClassVar[list["Counting"]] = []

    def __init__(self, fail_at: int | None = None, hold_at: int | None = None) -> None:
        self.calls: list[str] = []
        self.total = 0.0
        self.seen: list[tuple[int, Any]] = []
        self.threads: set[int] = set()
        self.fail_at, self.hold_at = fail_at, hold_at
        self.held, self.go_on = threading.Event(), threading.Event()
        Counting.made.append(self)

    def load(self, ctx: Context) -> None:
        self._called("load")

    def build(self, ctx: Context) -> None:
        self._called("build")

    def step(self, ctx: Context, n: int) -> Metrics:
        self.threads.add(threading.get_ident())
        if n == self.fail_at:
            raise ValueError(f"step {n} cannot be taken")
        if n == self.hold_at:
            self.held.set()
            assert self.go_on.wait(30)
        self.total += ctx.config.get("add", 1.0)
        self.seen.append((n, dict(ctx.config)))
        return {"total": self.total}

    def close(self, ctx: Context) -> None:
        self._called("close")

    def _called(self, name: str) -> None:
        self.threads.add(threading.get_ident())
        self.calls.append(name)
