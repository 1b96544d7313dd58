"""Comparing two arms of inference runs: compatibility first, then populations, metrics, designs and gates (IN-17)."""
