"""Observing tensor calls without disturbing the run."""
