"""PF-13: importing a profiler's trace of 100 MB: CPU against json.load, peak memory, Stormlog on the same file."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.generated_trace import write
from benchmarks.measuring import Row, in_turn, print_table
from paritrace.inference.appending import append_import, init
from paritrace.inference.artifact import head_of, place_of
from paritrace.inference.importers.kineto import KINETO
from paritrace.inference.importing import Asked, Scope

NUM_BYTES = 100_000_000
MIB = 1 << 20
PEER = Path(__file__).with_name("peer_stormlog_import.py.txt")
PEERS_PYTHON = Path(os.environ.get("PARITRACE_PEERS_PYTHON", ".venv-peers/bin/python"))
PEAK = "import resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"


def imported(trace: Path, folder: Path) -> Path:
    """Imports a trace into a new artifact, as `paritrace infer import trace` does."""
    run = folder / f"run-{len(list(folder.iterdir()))}"
    init(run)
    scope = head_of(place_of(run)).context.facts
    reading = KINETO.open(Asked(path=trace, scope=Scope(scope.run_id, scope.session_id)))
    append_import(run, reading, component="import:kineto", run_id=scope.run_id, session=scope.session_id)
    return run


def peak(statement: str) -> float:
    """Returns the peak memory of a process that runs this, in MiB."""
    done = subprocess.run(
        [sys.executable, "-c", f"{statement}; {PEAK}"], capture_output=True, text=True, timeout=900, check=True
    )
    return float(done.stdout)


def stormlog(trace: Path) -> tuple[float, float] | None:
    """Returns CPU seconds and peak MiB of Stormlog's import, None where its environment is not there."""
    if not PEERS_PYTHON.exists():
        return None
    command = [str(PEERS_PYTHON), "-c", PEER.read_text(), str(trace)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=True, env=environment)
    seconds, mib = done.stdout.split()
    return float(seconds), float(mib)


def main() -> None:
    """Print the table of PF-13."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "runs"
        folder.mkdir()
        trace = Path(name) / "trace.json"
        kernels = write(trace, num_bytes=NUM_BYTES)
        # first, while this process is small: a child is told the peak of whoever forked it as its own
        module = "from pathlib import Path; from benchmarks.pf13_trace_import import imported"
        call = f"{module}; imported(Path({str(trace)!r}), Path({str(folder)!r}))"
        ours_mib = peak(call)
        json_mib = peak(f"import json; json.load(open({str(trace)!r}))")
        cost = in_turn(
            {"json": lambda: json.loads(trace.read_bytes()), "ours": lambda: imported(trace, folder)},
            runs=5,
            clock=time.process_time,
        )
        peer = stormlog(trace)
        size = trace.stat().st_size
    ours = cost["ours"].cpu
    rows = [
        Row("CPU of importing the trace", ours / cost["json"].cpu, "json.loads of it", ("<=", 3.0)),
        Row("peak memory of importing it, in 256 MiB", ours_mib / 256, "256 MiB", ("<=", 1.0)),
    ]
    told = (
        f"{size / MIB:.0f} MiB with {kernels:,} kernels: {ours:.1f} s of CPU, {ours_mib:.0f} MiB at most; json.load: "
    )
    told += f"{cost['json'].cpu:.1f} s, {json_mib:.0f} MiB."
    if peer is None:
        told += " Stormlog was not measured: its environment (requirements/peers.txt) is not there."
    else:
        rows.append(Row("CPU of Stormlog's import of it", peer[0] / ours, "ours", (">=", 5.0)))
        told += f" Stormlog: {peer[0]:.1f} s, {peer[1]:.0f} MiB."
    print_table("PF-13", rows, (told,))


if __name__ == "__main__":
    main()
