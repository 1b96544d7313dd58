"""Adapters for tests of hosts: one small program that does what its input names, and scripted cgroups."""

import sys
from pathlib import Path

from paritrace.evidence.gaps import Gap, ResourceGap
from paritrace.process.cgroup_evidence import CgroupScope, CgroupVersion, OomCount
from paritrace.process.cgroups import Cgroups
from paritrace.runs.adapters import ProcessAdapter

# Answers `ready`, then does what `input["do"]` names; everything else of the input comes back as its output.
PROGRAM = """
import json, os, signal, sys, time
def say(**told):
    sys.stdout.write(json.dumps(told) + "\\n")
    sys.stdout.flush()
for line in sys.stdin:
    asked = json.loads(line)
    if asked["type"] == "hello":
        say(type="ready", adapter="test", harness="tests")
        continue
    if asked["type"] == "stop":
        break
    given = asked["input"]
    do, result = given["do"], {"type": "result", "invocation_id": asked["invocation_id"], "status": "succeeded"}
    if "count" in given:
        open(given["counter"], "w").write(str(given["count"]))
    if do == "echo":
        say(**result, output=given, usage={"input_tokens": 3, "output_tokens": None})
    elif do == "deadline":
        say(**result, output=asked["deadline_seconds"])
    elif do == "fail":
        say(**{**result, "status": "failed"}, error={"code": "bad_task", "message": given["message"]})
    elif do == "cancel":
        say(**{**result, "status": "cancelled"})
    elif do == "raise":
        say(type="error", invocation_id=asked["invocation_id"], code="KeyError", message=given["message"])
    elif do == "exit":
        sys.exit(given["code"])
    elif do == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif do == "hang":
        signal.signal(signal.SIGTERM, signal.SIG_IGN if given["deaf"] else signal.SIG_DFL)
        time.sleep(60)
    elif do == "chatter":
        print("hello from a library", flush=True)
    elif do == "other":
        say(**{**result, "invocation_id": "another"})
    elif do == "lie":
        say(**{**result, "status": "failed"})
"""
ADAPTER = ProcessAdapter((sys.executable, "-S", "-c", PROGRAM))
SCOPE = CgroupScope(version=CgroupVersion.V2, path="/t", directory="/nowhere/t", top="/nowhere", device=1, inode=1)


class ScriptedCgroups(Cgroups):
    """One scope whose counter is what a file says; every read of it goes to `log`."""

    def __init__(self, counter: Path, log: list[str]) -> None:
        super().__init__()
        self._counter = counter
        self._log = log
        self.strangers: frozenset[int] = frozenset()
        self.now = iter(range(1 << 40, 1 << 62))
        counter.write_text("0")

    def scope_of(self, pid: int) -> CgroupScope | Gap[ResourceGap]:
        return SCOPE

    def members(self, scope: CgroupScope) -> frozenset[int] | Gap[ResourceGap]:
        return self.strangers

    def oom_count(self, scope: CgroupScope) -> OomCount | Gap[ResourceGap]:
        import time

        self._log.append("count")
        none: Gap[ResourceGap] = Gap(ResourceGap.NO_COUNTER)
        return OomCount(
            scope=scope,
            source="memory.events",
            oom_kill=int(self._counter.read_text()),
            oom_kill_local=none,
            oom_group_kill=none,
            oom=none,
            systemd_oomd_kills=none,
            read_monotonic_ns=time.monotonic_ns(),
        )
