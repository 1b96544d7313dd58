"""Processes: their identity and tree."""
