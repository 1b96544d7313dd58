"""A whole investigation through the protocol: `python drive.py FOLDER [--ranks N]` prints where two runs part."""

import argparse
import json
import subprocess
import sys
from pathlib import Path

TIMEOUT_SECONDS = 600


class Tools:
    """Asks for one action after the other; request and document of each stay in the folder."""

    def __init__(self, folder):
        self.folder = folder
        self.folder.mkdir(parents=True)

    def ask(self, name, action, **fields):
        command = [sys.executable, "-m", "paritrace.automation", action]
        if action != "capabilities":
            request = self.folder / f"{name}-request.json"
            request.write_text(json.dumps({"protocol_version": 1, **fields}))
            command += ["--request", str(request)]
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
        document = json.loads(done.stdout)
        (self.folder / f"{name}.json").write_text(done.stdout)
        if not document["ok"]:
            raise SystemExit(f"{action}: {json.dumps(document['error'], indent=2)}")
        return document["result"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ranks", type=int, default=1)
    options = parser.parse_args()
    folder = options.folder.absolute()
    tools = Tools(folder)

    launcher = [sys.executable]
    if options.ranks > 1:
        launcher += ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(options.ranks)]
    right = {
        "cwd": str(Path(__file__).parent.absolute()),
        "launcher": launcher,
        "script": "train.py",
        "ranks": list(range(options.ranks)),
    }
    wrong = {**right, "args": ["--fault"]}
    place = {"local_root": str(folder / "local"), "timeout_seconds": TIMEOUT_SECONDS}

    known = tools.ask("capabilities", "capabilities")
    print("actions:", " ".join(action["name"] for action in known["actions"]))
    discovery = tools.ask("discover", "discover", output=str(folder / "discovered"), workload=right, **place)
    plan = tools.ask("prepare", "prepare", output=str(folder / "plan"), workload=right, discovery=discovery)
    traces = [
        tools.ask(name, "trace", output=str(folder / name), workload=workload, discovery=discovery, plan=plan, **place)
        for name, workload in (("baseline", right), ("candidate", wrong))
    ]
    found = tools.ask(
        "compare",
        "compare",
        output=str(folder / "compared"),
        baseline=traces[0],
        candidate=traces[1],
        ranks=right["ranks"],
    )
    first = found["first_difference"]
    print("counts:", json.dumps(found["counts"]))
    for one in found["first_differences"]:
        print(f"rank {one['rank']}, step {one['step']}: {one['function']} at {one['file']}:{one['line']}")
    if first is None:
        return

    (folder / "map.json").write_text(
        json.dumps(
            {
                "format": "paritrace-alignment-map",
                "version": "1.0",
                "artifact_sha256": found["comparison"]["sha256"],
                "reviewer": "drive.py",
                "reason": "the first difference was looked at",
                "pairs": [
                    {
                        "decision": "replace"
                        if first["region"]
                        else "confirm",  # of a stretch: its first calls, as a pair
                        "rank": first["rank"],
                        "baseline": first["baseline_record_id"],
                        "candidate": first["candidate_record_id"],
                        "reason": "one call site on both sides",
                    }
                ],
                "slots": [],
            }
        )
    )
    aligned = tools.ask(
        "align", "align", artifact=found, alignment_map=str(folder / "map.json"), output=str(folder / "aligned")
    )
    print("aligned:", aligned["artifact"]["directory"], "verdict:", aligned["verdict"])


if __name__ == "__main__":
    main()
