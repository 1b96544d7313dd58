"""A figure of a comparison that has no value, with its reason (P1)."""

from msgspec import Struct

from paritrace.inference.comparison.vocabulary import CompareGap


class Absent(Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="gap"):
    """No value: told from values by `kind`."""

    gap: CompareGap
    detail: str | None = None
