"""The rule of a bearer token: where it stands, and that comparing tells nothing of it (SU-11, SE-17)."""

from collections.abc import Mapping
from hmac import compare_digest

HOSTS = ("127.0.0.1", "localhost")
BEARER = "Bearer "
TOKEN_BYTES = 32


def bearer(headers: Mapping[str, str], /) -> str:
    """Return the token of the header `authorization`, "" where there is none. `headers` by lower-case name."""
    stated = headers.get("authorization", "")
    return stated.removeprefix(BEARER) if stated.startswith(BEARER) else ""


def same(given: str, token: str, /) -> bool:
    """Compare in the same time whatever is given."""
    return compare_digest(given.encode("utf-8", "surrogatepass"), token.encode())
