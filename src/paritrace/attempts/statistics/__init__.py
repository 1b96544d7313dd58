"""Statistics of attempts, each by its name, with what it rests on; the routines are SciPy's (AT-13)."""
