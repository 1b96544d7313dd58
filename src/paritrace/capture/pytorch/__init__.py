"""The only package that touches torch."""
