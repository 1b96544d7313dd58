"""The parts of inference evidence that import torch."""
