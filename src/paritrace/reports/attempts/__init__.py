"""Reports of attempts: the same records as text, Markdown and HTML (AT-17)."""
