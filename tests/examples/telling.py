"""The resident example with the digest of its weights among the metrics, for tests that compare it bit by bit."""

from examples.resident import Workload
from paritrace.session.workload import Context, Metrics


class Telling(Workload):
    """As its base; a step also tells what the weights are then."""

    def step(self, ctx: Context, n: int) -> Metrics:
        return {**super().step(ctx, n), "weights": self.state_digest(ctx)}
