"""The HTTP API of a session: the same verbs as the command line and Python, on 127.0.0.1 and behind a token (SE-17)."""
