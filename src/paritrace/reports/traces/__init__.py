"""Results and runs as traces that Perfetto opens: native track events, one file for each rank (SU-8)."""
