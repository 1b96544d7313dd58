"""What paritrace does by itself, one run after the other: re-running by the recorded request (CP-15)."""
