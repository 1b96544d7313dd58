"""A workload without torch whose metrics are meant to break a page: markup as a name, numbers that are none or huge."""

import time
from typing import Any

from paritrace.session.workload import Context
from tests.session.rank.workloads import Resident

NAME = '<img src=x onerror="document.title=1">'
HOSTILE = "tests.browser.hostile_workload:Hostile"


class Hostile(Resident):
    """Has every capability; a step takes some milliseconds, so that a run can be stopped."""

    def step(self, ctx: Context, n: int) -> Any:
        time.sleep(0.004)
        told = super().step(ctx, n)
        return {**told, NAME: 1e308 if n % 2 else -1e308, "norm": float("inf"), "said": f"</script>{NAME}"}
