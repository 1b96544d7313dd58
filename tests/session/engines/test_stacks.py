import os
import signal
from pathlib import Path
from types import FrameType

from paritrace.session.engines.stacks import STACKS_SIGNAL, catches, stacks_of


def test_se12_a_process_that_has_not_this_file_open_is_never_sent_a_signal(tmp_path: Path) -> None:
    heard: list[int] = []

    def hear(number: int, _: FrameType | None) -> None:
        heard.append(number)

    path = tmp_path / "rank-0.stacks"
    path.touch()
    before = signal.signal(STACKS_SIGNAL, hear)
    try:
        assert catches(os.getpid())
        assert stacks_of({0: (os.getpid(), path)}) == {}
        assert heard == []
    finally:
        signal.signal(STACKS_SIGNAL, before)
    assert not catches(os.getpid())
