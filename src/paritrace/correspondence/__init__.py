"""The correspondence engine: which record of one side answers to which of the other, or why none does."""
