"""Lines of a journal, written down the way a session writes them."""

from typing import Any

from paritrace.session.journal import Line


class Told:
    """A journal in the making: one method for each thing that happens to a session."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.generation, self.revision, self.epoch = 0, 0, 0
        self.add("opened", session_id="s", format="paritrace-session-journal", version="1.0")

    def add(self, what: str, /, **facts: Any) -> "Told":
        self.lines.append(Line(len(self.lines), 0, self.generation, what, facts))
        return self

    def started(self, **ready: Any) -> "Told":
        self.generation += 1
        self.add("generation", event="started", generation=self.generation, config_revision=self.revision)
        return self.add("generation", event="ready", generation=self.generation, config_revision=self.revision, **ready)

    def inputs(self, digest: str) -> "Told":
        return self.add("inputs", digest=digest, generation=1, step=0, id="i")

    def run(self, event: str, step: int, *, schedule: dict[str, Any] | None = None) -> "Told":
        self.epoch += event in {"admitted", "parked"}
        facts = {"step": step, "target": 10_000, "epoch": self.epoch, "config_revision": self.revision}
        return self.add("run", event=event, id="r", **facts, **({"schedule": schedule} if schedule else {}))

    def ran(self, first: int, end: int, *, schedule: dict[str, Any] | None = None) -> "Told":
        return self.run("admitted", first, schedule=schedule).run("ended", end)

    def revised(self, kind: str = "configure", step: int = 0) -> "Told":
        self.revision += 1
        return self.add("revision", revision=self.revision, id="c", kind=kind, step=step)

    def checkpoint(self, event: str, name: str, step: int, *, digest: str = "") -> "Told":
        return self.add("checkpoint", event=event, name=name, step=step, digest=digest or f"sha of {name}")

    def autosaved(self, name: str, step: int, *, state: str = "s") -> "Told":
        more = {"content": f"files of {name}", "state_digests": {"0": state}, "seconds": 0.5}
        return self.add("checkpoint", event="autosaved", name=name, step=step, digest=f"sha of {name}", **more)
