"""The correspondence engine: which record of one side answers to which of the other, or why none does (CP-1 to CP-3c)."""
