"""Ends with sys.exit("text"): status 1 and the text on stderr."""
import sys

import torch

print(torch.nn.Linear(2, 2)(torch.ones(1, 2)).shape)
sys.exit("no more data")
