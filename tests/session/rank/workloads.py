"""Small workloads without torch, for ranks that are driven by hand."""

import json
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from paritrace.session.workload import (
    RUN_BOUNDARY,
    Accepts,
    ConfigField,
    Context,
    InputSet,
    Inspected,
    Metrics,
    Plan,
    Refusal,
    Unchanged,
)


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


class Resident:
    """Every capability, on a state that is one number; each method can be told to raise, or to say that it has not
    changed anything. The state is written as text, so that a test may damage it."""

    made: ClassVar[list["Resident"]] = []

    def __init__(self, raising: str = "", unchanged: str = "") -> None:
        self.raising, self.unchanged = raising, unchanged
        self.total, self.add, self.size = 0.0, 1.0, 1
        self.text, self.installed = "first", ""
        self.calls: list[str] = []
        self.preparing, self.go_on = threading.Event(), threading.Event()
        self.go_on.set()
        Resident.made.append(self)

    def check(self, ctx: Context) -> tuple[str, ...]:
        return ("no accelerator", "no package x") if self.raising == "check" else ()

    def load(self, ctx: Context) -> InputSet:
        self._may_raise("load")
        return _inputs("first")

    def build(self, ctx: Context) -> None:
        self._may_raise("build")
        self.add, self.size, self.total = ctx.config["add"], ctx.config["size"], 0.0

    def release_setup(self, ctx: Context) -> None:
        self.calls.append("release_setup")

    def step(self, ctx: Context, n: int) -> Metrics:
        self._may_raise("step")
        self.total += ctx.config["add"]
        return {"total": self.total, "add": ctx.config["add"], "none": float("nan")}

    def close(self, ctx: Context) -> None:
        self.calls.append("close")

    def config_fields(self) -> tuple[ConfigField, ...]:
        return (
            ConfigField("add", 1.0, minimum=0.0, maximum=100.0, impact=RUN_BOUNDARY),
            ConfigField("size", 1, minimum=1),
            ConfigField("every", 10, impact=RUN_BOUNDARY, owned_by_request=True),
        )

    def plan_config(self, ctx: Context, changes: Mapping[str, Any]) -> Plan | Refusal:
        if changes.get("add") == 13.0:
            return Refusal(("13 is not wanted", "and never was"))
        return Plan(dict(changes), impact={"add": RUN_BOUNDARY})

    def apply_config(self, ctx: Context, plan: Plan) -> None:
        self._may_raise("apply_config")
        self.add = plan.values.get("add", self.add)

    def save(self, ctx: Context, folder: Path) -> tuple[str, ...]:
        self._may_raise("save")
        if ctx.rank:
            return ()
        (folder / "state.txt").write_text(f"{self.total} {self.size}")
        return ("state.txt",)

    def inspect(self, ctx: Context, folder: Path) -> Inspected | Refusal:
        text = (folder / "state.txt").read_text()
        total, size = text.split()
        reasons = [] if float(total) >= 0 else ["the total is below 0"]
        if int(size) != self.size:
            reasons.append(f"size {size} where {self.size} is resident")
        if reasons:
            return Refusal(tuple(reasons))
        step = json.loads((folder / "manifest.json").read_text())["origin"]["step"]
        return Inspected(step=step, digest=text, retained_bytes=len(text), payload=float(total))

    def apply(self, ctx: Context, inspected: Inspected) -> int:
        self._may_raise("apply")
        assert isinstance(inspected.payload, float)
        self.total = inspected.payload
        return inspected.step

    def prepare_inputs(self, ctx: Context, reference: Mapping[str, Any]) -> InputSet | Refusal:
        self.preparing.set()
        assert self.go_on.wait(30)
        return _inputs(reference["text"]) if "text" in reference else Refusal(("no text was named",))

    def install_inputs(self, ctx: Context, prepared: InputSet) -> None:
        self._may_raise("install_inputs")
        self.installed = str(prepared.payload)

    def publish_inputs(self, ctx: Context, prepared: InputSet) -> None:
        self._may_raise("publish_inputs")
        self.text = self.installed

    def preview(
        self, ctx: Context, folder: Path, options: Mapping[str, Any]
    ) -> tuple[str, ...] | Callable[[], tuple[str, ...]]:
        self._may_raise("preview")
        total = self.total

        def written() -> tuple[str, ...]:
            assert self.go_on.wait(30)
            (folder / "total.txt").write_text(str(total))
            return ("total.txt",)

        return written if options.get("later") else written()

    def rebuild(self, ctx: Context, request: Mapping[str, Any]) -> None:
        self._may_raise("rebuild")
        self.build(ctx)

    def state_digest(self, ctx: Context) -> str:
        return f"{self.total} {self.size} {self.text}"

    def _may_raise(self, name: str) -> None:
        if self.unchanged == name:
            raise Unchanged(f"{name}: nothing was touched", "so it is said")
        if self.raising == name:
            raise RuntimeError(f"{name} fails")


def _inputs(text: str) -> InputSet:
    return InputSet(f"digest-of-{text}", entries=({"name": text},), facts={"num_letters": len(text)}, payload=text)


class Other(Resident):
    """Another implementation of the same state, which takes what the first one saved."""

    def accepts(self) -> Accepts:
        return Accepts(workloads=("tests.session.rank.workloads:Resident",))


class Showing(Resident):
    """A workload of which the second rank has something to show, and the first has not."""

    def offers_preview(self, ctx: Context) -> bool:
        return ctx.rank == 1


class Stuck:
    """Its build never comes back by itself; whether it was closed stands in a file of its scratch folder."""

    def load(self, ctx: Context) -> None:
        """Nothing is read."""

    def build(self, ctx: Context) -> None:
        (ctx.scratch / "building").touch()
        while True:  # in native code, where nothing but a signal or the end of the process reaches it
            with suppress(Exception):  # as workloads do
                time.sleep(600)

    def step(self, ctx: Context, n: int) -> Metrics:
        return {}

    def close(self, ctx: Context) -> None:
        (ctx.scratch / "closed").touch()
