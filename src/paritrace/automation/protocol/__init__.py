"""The protocol for programs and agents: requests, actions, results, each of version 1 (AU-1 to AU-22)."""
