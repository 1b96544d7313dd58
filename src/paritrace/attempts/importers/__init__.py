"""Results of other tools as attempts: one reader per tool, each figure with its file, digest and place (AT-16)."""
