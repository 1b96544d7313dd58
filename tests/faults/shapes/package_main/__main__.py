"""A package started as `python -m package_main`, with relative imports."""

import sys

import torch

from .model import build

torch.manual_seed(0)
model = build()
print(__name__, __package__, sys.argv[1:], __spec__.name)
print(model(torch.ones(2, 4)).sum().item().hex())
