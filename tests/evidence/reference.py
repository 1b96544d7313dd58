"""The fingerprint schemes once more, word by word in plain Python, to test the fast ones against."""

MASK = (1 << 64) - 1


def words(data: bytes) -> list[int]:
    padded = data + bytes(-len(data) % 4)
    return [int.from_bytes(padded[at : at + 4], "little") for at in range(0, len(padded), 4)]


def split(items: list[int], regions: int) -> list[list[int]]:
    length, longer = divmod(len(items), regions)
    parts: list[list[int]] = []
    at = 0
    for region in range(regions):
        size = length + (region < longer)
        parts.append(items[at : at + size])
        at += size
    return parts


def splitmix(state: int) -> int:
    """The output of splitmix64 whose state before the step is `state`."""
    z = (state + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def flat_u32_le_v1(data: bytes, regions: int) -> tuple[int, ...]:
    return tuple(_xor(part) for part in split(words(data), regions))


def mix_u32_le_v1(data: bytes, regions: int) -> tuple[int, ...]:
    keyed = [splitmix(word + (index << 32)) for index, word in enumerate(words(data))]
    return tuple(_xor(part) for part in split(keyed, regions))


def elements_u64(data: bytes, itemsize: int) -> int:
    values = [data[at : at + itemsize] for at in range(0, len(data), itemsize)]
    if itemsize <= 8:
        return sum(splitmix(int.from_bytes(value, "little")) for value in values) & MASK
    halves = [(int.from_bytes(value[:8], "little"), int.from_bytes(value[8:], "little")) for value in values]
    return sum(splitmix((splitmix(low) + high) & MASK) for low, high in halves) & MASK


def indexed_u64(data: bytes, itemsize: int) -> int:
    values = [data[at : at + itemsize] for at in range(0, len(data), itemsize)]
    total = 0
    for index, value in enumerate(values):
        if itemsize <= 8:
            total += splitmix((int.from_bytes(value, "little") + splitmix(index)) & MASK)
        else:
            low, high = int.from_bytes(value[:8], "little"), int.from_bytes(value[8:], "little")
            total += splitmix((splitmix((low + splitmix(index)) & MASK) + high) & MASK)
    return total & MASK


def _xor(items: list[int]) -> int:
    result = 0
    for item in items:
        result ^= item
    return result
