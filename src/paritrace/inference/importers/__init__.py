"""Readers of what engines, profilers and clients write: one module per source, one table (`importing.py`)."""
