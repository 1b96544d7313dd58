"""paritrace: where two machine-learning runs first part, and what could not be checked."""

__version__ = "0.1.0"
