"""Prints a lot, on both streams, and reads its own source."""
import inspect
import logging
import sys
import warnings

import torch

logging.basicConfig(format="%(filename)s:%(lineno)d %(message)s", stream=sys.stdout)


def f(x):
    logging.warning("in f")
    warnings.warn("a warning", stacklevel=2)
    return x * 2


warnings.showwarning = lambda message, category, filename, lineno, file=None, line=None: print(
    filename.rsplit("/", 1)[-1], lineno, message
)
for index in range(20000):
    print(f"line {index} " + "x" * 40)
f(torch.ones(2))
print(inspect.getsource(f))
sys.stdout.flush()
