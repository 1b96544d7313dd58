"""Resident sessions: a workload of one or more ranks stays in memory and is driven, on every rank or on none (SE-1)."""
