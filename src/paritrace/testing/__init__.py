"""Faults, clocks and strategies for tests; nothing imports it."""
