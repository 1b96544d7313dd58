"""A rank under torchrun: `torchrun … -m benchmarks.sessions.under_torchrun FOLDER WHAT`."""

import os
import sys
from pathlib import Path

from benchmarks.sessions.loads import begin_group, one_step, say_pid


def main() -> None:
    """Step until killed."""
    folder, what = Path(sys.argv[1]), sys.argv[2]
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    begin_group(what, rank=rank, world_size=world_size, store=f"file://{folder / 'store'}")
    say_pid(folder, rank=rank)
    while True:
        one_step(what, rank=rank, seconds=0.005)


if __name__ == "__main__":
    main()
