"""A rehearsal: a user's own workload is hurt on purpose, and what was promised is measured (SE-19)."""
