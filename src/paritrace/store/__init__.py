"""Local staging, published bundles, restore: ranks write to a local disk, and shared storage holds whole bundles."""
