"""Pairs of runs as engineers make them: what the first lines say, and whether that is what an expert says (CP-18)."""
