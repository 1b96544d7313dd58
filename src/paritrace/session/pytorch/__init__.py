"""What a rank does with torch, loaded only where the workload uses torch."""
