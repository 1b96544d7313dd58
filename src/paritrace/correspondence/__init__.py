"""The one engine that pairs records of two sides; it knows no tensors and no files."""
