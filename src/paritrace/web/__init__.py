"""The local web view: read-only pages and a JSON API over runs and kept comparisons (SU-10, SU-11)."""
