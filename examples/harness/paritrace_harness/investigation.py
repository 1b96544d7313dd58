"""Carries out the stages of one experiment, each once, and knows after a kill what was done and what was not.

The order of things makes it so: the request is on disk, then its line `begun` in the journal, then the tool is asked,
which writes its document into the output as its last act, then the line `ended`. After a kill the output says which of
them was last.
"""

import json
from pathlib import Path
from typing import Any

from paritrace_harness.asking import GRACE_SECONDS, ask, wait_for_end
from paritrace_harness.durable import encoded, replace, sha256_of
from paritrace_harness.journal import Event, ExperimentError, Journal
from paritrace_harness.stages import STAGES, Stage, alignment_map

QUESTION_SECONDS = 3600.0  # for what runs no workload


class StageError(Exception):
    """The tool answered with an error; the next start makes another attempt."""

    def __init__(self, stage: str, error: dict[str, Any]) -> None:
        super().__init__(f"{stage}: {error['code']}: {error['message']}\n    fix: {error['fix']}")


class Investigation:
    """One experiment in its folder."""

    def __init__(self, folder: Path, journal: Journal, experiment: bytes, *, tools: list[str]) -> None:
        self._folder = folder
        self._journal = journal
        self._experiment: dict[str, Any] = json.loads(experiment)
        self._tools = tools
        digest = sha256_of(experiment)
        if not journal.events:
            journal.append({"event": "experiment", "sha256": digest})
        if journal.events[0] != {**journal.events[0], "event": "experiment", "sha256": digest}:
            raise ExperimentError(f"{folder} holds another experiment; a changed one takes a new folder")

    def run(self, name: str) -> str:
        """Carry out a stage unless it is done; returns what to tell of it."""
        stage = STAGES[name]
        if self._ended(name) is not None:
            return f"{name}: done before"
        missing = [need for need in stage.needs if self._ended(need) is None]
        if missing:
            raise ExperimentError(f"{name} needs {', '.join(missing)}, which is not done")
        begun = self._unfinished(name)
        document = None if begun is None else self._found(stage, begun)
        if begun is None or document == b"":
            begun, document = self._begin(stage), None
        told = "found done" if document else f"done, attempt {begun['attempt']}"
        self._end(begun, document or self._answer(stage, begun))
        return f"{name}: {told}"

    def result(self, name: str) -> Any:
        """The result of a stage that is done, as it was when it ended."""
        ended = self._ended(name)
        if ended is None:
            raise ExperimentError(f"{name} is not done")
        path = self._path("documents", ended)
        data = path.read_bytes()
        if sha256_of(data) != ended["document_sha256"]:
            raise ExperimentError(f"{path} is not the document that the journal names any more")
        return json.loads(data)["result"]

    # --- what the journal says --------------------------------------------------------------------------------------

    def _ended(self, name: str) -> Event | None:
        return next((one for one in self._journal.of(name) if one["event"] == "ended" and one["ok"]), None)

    def _unfinished(self, name: str) -> Event | None:
        events = list(self._journal.of(name))
        return events[-1] if events and events[-1]["event"] == "begun" else None

    # --- one attempt ------------------------------------------------------------------------------------------------

    def _begin(self, stage: Stage) -> Event:
        """Write the request, then say in the journal that it is asked; every attempt has an output of its own."""
        attempt = 1 + sum(one["event"] == "begun" for one in self._journal.of(stage.name))
        results = {need: self.result(need) for need in stage.needs}
        begun: Event = {"event": "begun", "stage": stage.name, "attempt": attempt, "action": stage.action}
        begun["inputs"] = {need: result["digest"] for need, result in results.items()}
        fields = stage.fields(self._experiment, results, self._folder)
        if fields is not None and "alignment_map" in fields:
            made = encoded(alignment_map(self._experiment, results["compare"]))
            replace(Path(fields["alignment_map"]), made)
            begun["map_sha256"] = sha256_of(made)
        if fields is not None:
            output = {"output": str(self._folder / "outputs" / f"{stage.name}-{attempt}")} if stage.writes else {}
            request = encoded({"protocol_version": 1, **output, **fields})
            replace(self._path("requests", begun), request)
            begun |= {"request_sha256": sha256_of(request), **output}
        self._journal.append(begun)
        return begun

    def _found(self, stage: Stage, begun: Event) -> bytes | None:
        """What an attempt that was cut off left: its document, None where it never began, b"" where it was lost."""
        wait_for_end(self._path("locks", begun), seconds=self._seconds(stage))
        output = Path(begun["output"]) if "output" in begun else None
        if output is None or not output.exists():
            return None
        owner = output / "operation.json"
        if owner.exists() and json.loads(owner.read_bytes())["request_sha256"] != begun["request_sha256"]:
            raise ExperimentError(f"{output} belongs to another request")
        for name in ("result.json", "error.json"):
            if (output / name).exists():
                return (output / name).read_bytes()
        lost = {key: begun[key] for key in ("stage", "attempt", "output")}
        self._journal.append({"event": "lost", **lost, "why": "its operation was killed"})
        return b""

    def _answer(self, stage: Stage, begun: Event) -> bytes:
        if "request_sha256" not in begun:
            nothing = {"action": stage.action, "digest": "0" * 64, "nothing_to_do": True}
            return encoded({"protocol_version": 1, "ok": True, "result": nothing})
        request = self._path("requests", begun)
        if sha256_of(request.read_bytes()) != begun["request_sha256"]:
            raise ExperimentError(f"{request} is not the request that the journal names any more")
        takes = None if stage.action == "capabilities" else request
        lock = self._path("locks", begun)
        document = ask(self._tools, stage.action, takes, lock=lock, seconds=self._seconds(stage))
        if not document:
            raise ExperimentError(f"{stage.name}: the tool left no document; start again to go on")
        return document

    def _end(self, begun: Event, document: bytes) -> None:
        found = json.loads(document)
        replace(self._path("documents", begun), document)
        ended = {"event": "ended", "stage": begun["stage"], "attempt": begun["attempt"], "ok": found["ok"]}
        told = {"digest": found["result"]["digest"]} if found["ok"] else {"code": found["error"]["code"]}
        self._journal.append({**ended, "document_sha256": sha256_of(document), **told})
        if not found["ok"]:
            raise StageError(begun["stage"], found["error"])

    def _path(self, kind: str, of: Event) -> Path:
        suffix = ".lock" if kind == "locks" else ".json"
        return self._folder / kind / f"{of['stage']}-{of['attempt']}{suffix}"

    def _seconds(self, stage: Stage) -> float:
        return (self._experiment["timeout_seconds"] if stage.runs else QUESTION_SECONDS) + GRACE_SECONDS
