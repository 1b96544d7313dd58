"""Results as Markdown, for a pull request (SU-7)."""
