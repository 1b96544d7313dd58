"""What tests of discover, prepare and trace share: a checkout, requests, launchers with faults."""

import hashlib
import json
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import warm
from paritrace.automation.protocol.serving import serve
from paritrace.automation.protocol.table import load_action

CALLSITES = Path(__file__).parents[2] / "capture" / "callsites"
ROOT = Path(__file__).parents[3]
TIMEOUT_SECONDS = 300.0
SECRET = "value-of-a-variable"


@dataclass
class Protocol:
    """Asks for actions on a workload in `folder / checkout`; every request has an output of its own."""

    folder: Path
    launcher: list[str]
    script: str
    ranks: list[int]
    number: int = 0

    @property
    def checkout(self) -> Path:
        return self.folder / "checkout"

    def workload(self, *args: str) -> dict[str, Any]:
        return {
            "cwd": str(self.checkout),
            "launcher": self.launcher,
            "script": self.script,
            "args": list(args),
            "ranks": self.ranks,
            "env": {**warm.SERVED, "MY_TOKEN": SECRET},
        }

    def request(self, action: str, *args: str, **fields: object) -> Path:
        """Write a request; the output's name is that of the request."""
        self.number += 1
        path = self.folder / "requests" / f"{self.number}-{action}.json"
        path.parent.mkdir(exist_ok=True)
        document: dict[str, object] = {
            "protocol_version": 1,
            "output": str(self.folder / "outputs" / path.stem),
            "workload": self.workload(*args),
        }
        if action != "prepare":
            document |= {"local_root": str(self.folder / "local"), "timeout_seconds": TIMEOUT_SECONDS}
        path.write_text(json.dumps(document | fields))
        return path

    def ask(self, action: str, *args: str, **fields: object) -> dict[str, Any]:
        document: dict[str, Any] = serve(load_action(action), self.request(action, *args, **fields))
        return document

    def result(self, action: str, *args: str, **fields: object) -> dict[str, Any]:
        document = self.ask(action, *args, **fields)
        assert document["ok"], document
        found: dict[str, Any] = document["result"]
        return found

    def error(self, action: str, *args: str, **fields: object) -> dict[str, Any]:
        document = self.ask(action, *args, **fields)
        assert not document["ok"], document
        found: dict[str, Any] = document["error"]
        return found


def training(folder: Path, launcher: list[str] | None = None, ranks: tuple[int, ...] = (0,)) -> Protocol:
    """A checkout with the two files of the call-site training."""
    checkout = folder / "checkout"
    (checkout / ".git").mkdir(parents=True)
    for name in ("callsite_training.py", "callsite_model.py"):
        shutil.copy(CALLSITES / name, checkout / name)
    return Protocol(folder, launcher or [warm.python()], "callsite_training.py", list(ranks))


def program(folder: Path, text: str, launcher: str = "", ranks: tuple[int, ...] = (0,)) -> Protocol:
    """A checkout with one script that needs no torch, and a launcher that is a script beside it."""
    checkout = folder / "checkout"
    (checkout / ".git").mkdir(parents=True)
    (checkout / "main.py").write_text(text)
    (folder / "launcher.py").write_text(launcher)
    words = [sys.executable, str(folder / "launcher.py")] if launcher else [sys.executable]
    return Protocol(folder, words, "main.py", list(ranks))


def digests(folder: Path) -> dict[str, str]:
    """Every file of a folder, hidden ones and bytecode too."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def environment() -> dict[str, str]:
    kept = {name: text for name, text in os.environ.items() if not name.startswith("PARITRACE_")}
    return {**kept, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
