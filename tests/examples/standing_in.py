"""Stands in for paritrace-tools where the journal of the harness is the subject: `standing_in.py FOLDER ACTION …`.

Keeps to what the protocol promises of outputs: claimed once, marked with the request's digest, ended by `result.json`
or `error.json`. Each operation that ends leaves a line in FOLDER/done. FOLDER/faults names one fault for an action:
`killed` after the claim, `refused`, or `waits`, for somebody to write to the FIFO FOLDER/go.
"""

import hashlib
import json
import os
import sys
from typing import Any


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def written(path: str, document: dict[str, Any]) -> None:
    with open(path, "w") as stream:
        json.dump(document, stream)


def main(folder: str, action: str, *words: str) -> int:
    request: dict[str, Any] = {}
    text = ""
    if words:
        with open(words[1]) as stream:
            text = stream.read()
        request = json.loads(text)
        try:
            os.makedirs(request["output"])
        except FileExistsError:
            sys.stdout.write(json.dumps(refusal("output_not_fresh")))
            return 2
        written(os.path.join(request["output"], "operation.json"), {"request_sha256": digest(text)})
    fault = fault_of(folder, action)
    if fault == "killed":
        os.kill(os.getpid(), 9)
    if fault == "waits":
        with open(os.path.join(folder, "go")) as stream:
            stream.read()
    document = refusal("source_changed") if fault == "refused" else success(action, request)
    with open(os.path.join(folder, "done"), "a") as stream:
        stream.write(f"{action} {request.get('output', '')}\n")
    if words:
        written(os.path.join(request["output"], "result.json" if document["ok"] else "error.json"), document)
    sys.stdout.write(json.dumps(document))
    return 0 if document["ok"] else 2


def fault_of(folder: str, action: str) -> str:
    path = os.path.join(folder, "faults")
    if not os.path.exists(path):
        return ""
    with open(path) as stream:
        wanted, fault = stream.read().split()
    if wanted != action:
        return ""
    os.unlink(path)
    return fault


def refusal(code: str) -> dict[str, Any]:
    return {"ok": False, "error": {"code": code, "message": "net.py is another one", "fix": "restore it"}}


def success(action: str, request: dict[str, Any]) -> dict[str, Any]:
    first = {
        "rank": 0,
        "step": 0,
        "phase": "forward",
        "function": "f",
        "file": "<main>",
        "line": 3,
        "difference_class": "other_bits",
        "region": False,
        "baseline_record_id": "baseline:1",
        "candidate_record_id": "candidate:1",
    }
    result = {
        "action": action,
        "digest": digest(json.dumps(request, sort_keys=True)),
        "first_difference": first,
        "first_differences": [first],
        "comparison": {"sha256": "0" * 64},
        "artifact": {"directory": request.get("output", "")},
        "counts": {},
        "ranks_missing": [],
        "verdict": "not_evaluated",
    }
    return {"protocol_version": 1, "ok": True, "result": result}


sys.exit(main(*sys.argv[1:]))
