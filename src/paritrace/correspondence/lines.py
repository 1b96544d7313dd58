"""The exact diff of two recorded source texts: which line of one is the same line of the other (CP-5)."""

from collections import Counter
from collections.abc import Sequence

from paritrace.correspondence.crossing import surviving

Relation = dict[int, int]


def related_lines(a: str, b: str) -> Relation:
    """Return line of `a` -> line of `b` (from 1) for lines that are unchanged, also where others moved around them.

    Symmetric: swapping the texts inverts the relation. A line that moved is related when its text stands exactly
    once among the lines left over on each side.
    """
    left, right = a.splitlines(), b.splitlines()
    found: Relation = {}
    waiting = [(0, len(left), 0, len(right))]
    while waiting:
        waiting += _within(left, right, waiting.pop(), found)
    _moved(left, right, found)
    return {i + 1: j + 1 for i, j in found.items()}


Window = tuple[int, int, int, int]


def _within(left: Sequence[str], right: Sequence[str], window: Window, found: Relation) -> list[Window]:
    """Relate equal ends of a window and the lines that occur once in it; return the windows in between."""
    start_a, end_a, start_b, end_b = window
    while start_a < end_a and start_b < end_b and left[start_a] == right[start_b]:
        found[start_a] = start_b
        start_a, start_b = start_a + 1, start_b + 1
    while start_a < end_a and start_b < end_b and left[end_a - 1] == right[end_b - 1]:
        end_a, end_b = end_a - 1, end_b - 1
        found[end_a] = end_b
    anchors = _anchors(left, right, (start_a, end_a, start_b, end_b))
    windows: list[Window] = []
    for i, j in anchors:
        found[i] = j
        windows.append((start_a, i, start_b, j))
        start_a, start_b = i + 1, j + 1
    if anchors:
        windows.append((start_a, end_a, start_b, end_b))
    return [w for w in windows if w[0] < w[1] and w[2] < w[3]]


def _anchors(left: Sequence[str], right: Sequence[str], window: Window) -> list[tuple[int, int]]:
    once_a, once_b = _once(left, range(window[0], window[1])), _once(right, range(window[2], window[3]))
    pairs = sorted((i, once_b[text]) for text, i in once_a.items() if text in once_b)
    alive = surviving([j for _, j in pairs])
    return [pair for pair, lives in zip(pairs, alive, strict=True) if lives]


def _moved(left: Sequence[str], right: Sequence[str], found: Relation) -> None:
    taken = set(found.values())
    once_a = _once(left, [i for i in range(len(left)) if i not in found])
    once_b = _once(right, [j for j in range(len(right)) if j not in taken])
    for text, i in once_a.items():
        if text.strip() and text in once_b:
            found[i] = once_b[text]


def _once(lines: Sequence[str], places: Sequence[int]) -> dict[str, int]:
    counts = Counter(lines[place] for place in places)
    return {lines[place]: place for place in places if counts[lines[place]] == 1}
