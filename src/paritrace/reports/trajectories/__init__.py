"""Reports of where two trajectories part: a screen for one task, one for many, and the document of both (AT-23)."""
