"""Commands on a long artifact hold columns of it, never its records (IN-8, IN-9, IN-19)."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from paritrace.inference.appending import GivenEvents, append, init
from paritrace.inference.enveloping import SessionFacts
from paritrace.inference.records import Observation
from tests.inference.evidence import RUN, SESSION, claim, iteration, kernel, launch

SHORT, LONG, IN_STEP = 5_000, 55_000, 500
WITHIN_SECONDS = 300.0
MOST_BYTES = {  # for each activity more; a record is 1 to 2 KB
    "from paritrace.inference.show_report import show_artifact as does": 450,
    "from paritrace.inference.account_report import account_artifact as does": 450,
    "from paritrace.inference.link_report import link_artifact as does": 900,  # what it writes is gathered, too
}
PEAK = "; import sys, pathlib; does(pathlib.Path(sys.argv[1])); "
PEAK += "print(pathlib.Path('/proc/self/status').read_text().partition('VmHWM:')[2].split()[0])"  # since exec


def events(number: int) -> Iterator[Observation]:
    for place in range(number):
        if place % IN_STEP == 0:
            yield iteration(str(place // IN_STEP), place * 100, (place + IN_STEP) * 100)
        start, end, key = place * 100, place * 100 + 50, str(place // 2 + 1)
        if place % 4 == 1:
            yield claim(f"k{place}", str(place // IN_STEP), start_ns=start, end_ns=end, runtime_correlation_id=key)
        elif place % 4 == 3:
            yield launch(f"k{place}", start, end, cuda_correlation_id=key)
        else:
            yield kernel(f"k{place}", start, end, cuda_correlation_id=key)


def peak(statement: str, run: Path) -> int:
    command = [sys.executable, "-c", statement + PEAK, str(run)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WITHIN_SECONDS, check=True)
    return int(done.stdout) << 10


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak since exec is read from /proc")
@pytest.mark.parametrize("statement", MOST_BYTES, ids=["show", "account", "link"])
def test_memory_grows_by_columns(statement: str, tmp_path: Path) -> None:
    peaks: list[int] = []
    for number in (SHORT, LONG):
        run = tmp_path / str(number)
        init(run, run_id=RUN, session=SessionFacts(session_id=SESSION))
        append(run, run_id=RUN, session=SESSION, engine_adapter=GivenEvents(events(number)))
        peaks.append(peak(statement, run))
    assert (peaks[1] - peaks[0]) / (LONG - SHORT) < MOST_BYTES[statement]
