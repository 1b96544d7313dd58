"""The address on which a coordinator takes ranks: `HOST:PORT`, one of this machine's own (SE-16)."""

import ipaddress

from msgspec import Struct

from paritrace.errors import RequestError


class Address(Struct, frozen=True):
    """Where to listen. Port 0: any free one."""

    host: str
    port: int = 0


LOOPBACK = Address("127.0.0.1")


def address_of(text: str, /) -> Address:
    """Return the address that `HOST:PORT`, `HOST` or `[IPV6]:PORT` says.

    The host is told to the ranks as it is given, so that it has to be an address, and one that leads here: a name may
    mean something else elsewhere, and `0.0.0.0` means nothing there.

    Raises:
        RequestError: Refused, `bad_listen`.
    """
    host, port = _parts(text)
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        raise _bad(f"{host[:100]!r} is no IP address") from None
    if found.is_unspecified or found.is_multicast:
        raise _bad(f"{host} is no address that a rank could dial")
    if not port.isdecimal() or int(port) > 65535:
        raise _bad(f"{port[:100]!r} is no port")
    return Address(str(found), int(port))


def _parts(text: str) -> tuple[str, str]:
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        return host, rest.removeprefix(":") or "0"
    host, _, port = text.partition(":")
    return (text, "0") if ":" in port else (host, port or "0")  # several colons: IPv6 without a port


def _bad(words: str) -> RequestError:
    return RequestError(
        f"--listen: {words}",
        code="bad_listen",
        fix="name one address of this machine that the ranks' machines reach, as 10.0.0.1 or 10.0.0.1:7000",
    )
