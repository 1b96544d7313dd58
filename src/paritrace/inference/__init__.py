"""Inference evidence: requests, scheduler iterations, device work, and what was lost."""
