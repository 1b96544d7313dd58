"""Attempts at tasks under several configurations: what they used, what was judged, what is not known."""
