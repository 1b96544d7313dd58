"""The process group of a session: joined through its store, left at its end (SE-16, SE-21)."""

from datetime import timedelta

import torch.distributed as dist

from paritrace.session.workload import Context


def join(ctx: Context, backend: str, /) -> None:
    """Make torch's default process group from what the context says: its store, rank and world size (SE-2, SE-16).

    Its timeout is the bound `process_group`, the last backstop: who is waited for is known long before it runs out.
    """
    dist.init_process_group(
        backend,
        init_method=ctx.store,
        rank=ctx.rank,
        world_size=ctx.world_size,
        timeout=timedelta(seconds=ctx.group_timeout_seconds),
    )


def leave() -> None:
    """Leave the default process group; nothing happens where there is none."""
    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()
