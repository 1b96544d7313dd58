"""Comparing two runs and checking one."""
