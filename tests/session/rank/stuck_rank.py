"""A rank as a process of its own whose workload is stuck: `python -m tests.session.rank.stuck_rank FOLDER cut|term`."""

import sys
import threading
from pathlib import Path

from paritrace.session.engines.seam import RankSpec
from paritrace.session.messages import Beat
from paritrace.session.rank.serving import serve
from tests.session.rank.lines import NearLine


def main(folder: str, how: str) -> int:
    line = NearLine()

    def coordinator() -> None:
        line.first(Beat, lambda beat: beat.phase == "building")
        if how == "cut":
            line.close()

    threading.Thread(target=coordinator, daemon=True).start()
    spec = RankSpec(
        directory=str(Path(folder)),
        session_id="session-1",
        workload="tests.session.rank.workloads:Stuck",
        arguments={},
        world_size=1,
        generation=1,
        job_id="job-1",
        token="secret",
    )
    return serve(line, spec, rank=0, local_rank=0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
