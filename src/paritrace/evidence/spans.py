"""Numbers in words, runs of them joined: "0-2, 5"."""

from collections.abc import Iterable


def ranges(numbers: Iterable[int], /) -> str:
    """Returns "0-2, 5" of numbers in any order."""
    spans: list[list[int]] = []
    for number in sorted(set(numbers)):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)
