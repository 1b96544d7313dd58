"""Ranks that are killed, stopped or stuck: under a session, torchrun and Ray alike (PF-17, PF-18)."""
