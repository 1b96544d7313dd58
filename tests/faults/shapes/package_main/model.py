"""The model of a package that is started with -m."""

from torch import nn


def build():
    return nn.Linear(4, 1)
