"""Reports: they take records and print, bounded."""
