"""The weights that the workload starts from, made outside it, so that a checkpoint can be changed."""

import importlib.util

import torch
from torch import Tensor

from benchmarks.faults.checkouts import WORKLOAD


def initial_weights() -> dict[str, Tensor]:
    """A state dict of the workload's decoder with two layers, seed 7; tied parameters share no memory in it."""
    spec = importlib.util.spec_from_file_location("faults_workload_model", WORKLOAD / "model.py")
    if spec is None or spec.loader is None:
        raise FileNotFoundError(WORKLOAD / "model.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with torch.random.fork_rng():
        torch.manual_seed(7)
        model = module.Decoder(61, layers=2, dropout=0.1, recompute=False)
    return {name: value.detach().clone() for name, value in model.state_dict().items()}
