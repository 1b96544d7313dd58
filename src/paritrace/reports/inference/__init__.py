"""Screens of inference evidence."""
