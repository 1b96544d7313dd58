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
ANEW = "Measured anew, "
_COMMAND = re.compile(r"^`python -m benchmarks\.(pf\w+)`", re.MULTILINE)
_SCRIPT = re.compile(r"\bpf[0-9][0-9]_\w+")
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
    """The day, the machine and the versions, without names of hosts or users."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES if _installed(name))
    return (
        f"{time.strftime('%Y-%m-%d', time.gmtime())}: {_processor()}, {os.cpu_count()} logical cores, "
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


def renewed(results: str, sections: dict[str, str], where: str) -> str:
    """Results with the sections of some scripts put in their place, and a line that says where those were measured.

    `sections` are by script. A script has one such line at most: that of its last run.
    """
    head, *old = re.split(r"^(?=## )", results, flags=re.MULTILINE)
    known = {found[1]: text.strip() for text in old if (found := _COMMAND.search(text))} | sections
    lines = [line for line in head.strip().splitlines() if not line.startswith(ANEW)]
    earlier = {line: _SCRIPT.findall(line) for line in head.splitlines() if line.startswith(ANEW)}
    for line, names in earlier.items():
        left = [name for name in names if name not in sections]
        if left:
            lines += ["", line.replace(", ".join(names), ", ".join(left))]
    lines += ["", f"{ANEW}{', '.join(sorted(sections))}: {where.strip()}"]
    text = "\n\n".join(["\n".join(lines), *(known[name].strip() for name in sorted(known))])
    return re.sub(r"\n{3,}", "\n\n", text) + "\n"


def main() -> None:
    """Run all and write the results, or only print some, or measure some anew and write those in their place."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", choices=scripts(), help="run only this script and write nothing")
    parser.add_argument("--renew", action="append", choices=scripts(), help="run only this script and write its part")
    given = parser.parse_args()
    for script in given.only or ():
        measured(script)
    if given.renew:
        where = machine()
        sections = {script: measured(script) for script in given.renew}
        RESULTS.write_text(renewed(RESULTS.read_text(encoding="utf-8"), sections, where), encoding="utf-8")
    if given.only or given.renew:
        return
    parts = [HEAD, f"Measured on {machine()}", *(measured(script) for script in scripts())]
    RESULTS.write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
