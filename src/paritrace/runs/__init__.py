"""Run directories: envelope, sessions, catalog, verify and pack."""
