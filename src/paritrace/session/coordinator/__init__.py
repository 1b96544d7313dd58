"""The process that owns a session: it holds the machine, the directory, the engine and the HTTP API (SE-2)."""
