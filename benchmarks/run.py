"""Runs every measurement of performance.md that is here, in turn, and writes `benchmarks/results.md` (`make bench`)."""

import argparse
import os
import platform
import re
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results.md"
PACKAGES = ("torch", "numpy", "numba", "msgspec", "xxhash", "zstandard", "pyarrow", "duckdb", "click")
TIMEOUT_SECONDS = 1800  # the longest takes some eight minutes on a busy machine

HEAD = """# Measurements

<!-- made by `make bench`: do not edit -->

Every figure is a ratio to something run in the same process or the same minute, from the CPU time of the thread or of
the process, because machines are shared. Medians of at least 5 interleaved runs, after one run to warm up. A goal that
was missed is shown as missed.
"""


def scripts() -> list[str]:
    """The modules `pfNN_….py`, in order of their number."""
    return sorted(path.stem for path in FOLDER.glob("pf[0-9][0-9]_*.py"))


def measured(script: str) -> str:
    """What one script prints, under its first line; a script that fails says so in the table's place."""
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{script}"],
        cwd=FOLDER.parent,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    text = done.stdout.strip() if done.returncode == 0 else f"**failed** with status {done.returncode}"
    sys.stdout.write(f"{text}\n\n" if done.returncode == 0 else f"{script}: {text}\n{done.stderr}\n")
    title = re.match(r'"""(.*?)"""', (FOLDER / f"{script}.py").read_text(encoding="utf-8"), re.DOTALL)
    heading = " ".join(title[1].split()) if title else script
    return f"## {heading}\n\n{text}\n\n`python -m benchmarks.{script}`, {time.monotonic() - started:.0f} s\n"


def machine() -> str:
    """The machine and the versions, without names of hosts or users."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES if _installed(name))
    return (
        f"Measured on {time.strftime('%Y-%m-%d', time.gmtime())}: {_processor()}, {os.cpu_count()} logical cores, "
        f"{memory:.0f} GiB, {platform.system()} {platform.machine()}, load {os.getloadavg()[0]:.1f} at the start; "
        f"Python {platform.python_version()}, {versions}.\n"
    )


def _installed(name: str) -> bool:
    try:
        return bool(version(name))
    except ModuleNotFoundError:
        return False


def _processor() -> str:
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        found = None
    return found[1] if found else platform.processor() or "unknown processor"


def main() -> None:
    """Run all, or those named, and write the results; those named are only printed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", choices=scripts(), help="run only this script and write nothing")
    only: list[str] | None = parser.parse_args().only
    if only:
        for script in only:
            measured(script)
        return
    parts = [HEAD, machine(), *(measured(script) for script in scripts())]
    RESULTS.write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
