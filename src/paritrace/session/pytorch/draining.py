"""Waits until the accelerators of this process have done all that was queued (SE-6)."""

import torch


def drain() -> None:
    """Wait for the queues of the devices this process uses; on a machine without one nothing is waited for."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
    elif torch.accelerator.is_available() and torch.accelerator.current_accelerator() != torch.device("cuda"):
        torch.accelerator.synchronize()
