"""Numbers that tracks, sequences and flows go by: alike for the same source, apart for different ranks (SU-8): pure."""

from hashlib import blake2b

RANK_BITS = 16


def number_of(*parts: object) -> int:
    """Returns 63 bits that follow from `parts` and are not 0: the id of a track or a flow."""
    text = "\0".join(map(str, parts)).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest()) >> 1 or 1


def sequence_of(source: str, rank: int, /) -> int:
    """Returns the id of a rank's sequence of packets: of one source no two ranks below 65,535 share it."""
    mask = (1 << RANK_BITS) - 1
    of_source = number_of("sequence", source) & 0x7FFF
    return of_source << RANK_BITS | (rank + 1) & mask or 1


def pid_of(rank: int, /) -> int:
    """Returns the process id under which a rank is shown: ids of different hosts may be equal, these are not."""
    return rank + 1
