"""Asks an action as a program would: a request in a file, a document back."""

import json
from pathlib import Path
from typing import Any

from paritrace.automation.protocol.serving import serve
from paritrace.automation.protocol.table import load_action


def ask(place: Path, name: str, **fields: object) -> Any:
    """The document that an action answers with; the request is written into `place`."""
    path = place / "request.json"
    path.write_text(json.dumps({"protocol_version": 1, **fields}))
    return serve(load_action(name), path)


def result_of(place: Path, name: str, **fields: object) -> Any:
    """The result of an action that is done."""
    document = ask(place, name, **fields)
    assert document["ok"] is True, document
    return json.loads(json.dumps(document["result"]))  # as a program reads it


def error_of(place: Path, name: str, **fields: object) -> Any:
    """The error of an action that is not done."""
    document = ask(place, name, **fields)
    assert document["ok"] is False, document
    return document["error"]
