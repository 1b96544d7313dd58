"""Base of a call journal's object lines: definitions and marks."""

from msgspec import Struct


class Definition(Struct, frozen=True, tag_field="type", forbid_unknown_fields=True):
    """Base of the object lines. A reader of a higher minor version uses a lenient decoder (codec)."""
