"""Results where GitHub shows them: annotations at lines of source, the summary of a step (SU-7, SU-14)."""
