"""Where bundles are published to: a directory, S3-compatible object storage, or memory (ST-14)."""

import re
from pathlib import Path

from paritrace.errors import RequestError
from paritrace.store.targets.protocol import Entry, Put, Target, is_transient

__all__ = ["Entry", "Put", "Target", "is_transient", "open_target"]

_ADDRESS = re.compile(r"(?P<scheme>[a-zA-Z][a-zA-Z0-9+.-]*)://(?P<rest>.*)", re.DOTALL)


def open_target(text: str) -> Target:
    """Return the target that a person named: a path, `memory://NAME` or `s3://BUCKET/PREFIX`; nothing is asked of it.

    Endpoint and credentials of S3 come from the environment, as the AWS tools read them.

    Raises:
        RequestError: Refused, code `bad_target`.
        HostError: Refused, code `missing_extra`: S3 without the extra `s3`.
    """
    address = _ADDRESS.fullmatch(text)
    if address is None:
        return _directory(text)
    scheme, rest = address["scheme"].lower(), address["rest"]
    if scheme == "file" and rest.startswith("/"):
        return _directory(rest)
    if scheme == "memory" and rest:
        from paritrace.store.targets.memory import MemoryTarget

        return MemoryTarget(rest)
    if scheme == "s3":
        from paritrace.store.targets.s3 import open_s3

        return open_s3(rest)
    raise _bad(text)


def _directory(text: str) -> Target:
    from paritrace.store.targets.directory import DirectoryTarget

    if not text or "\0" in text:
        raise _bad(text)
    return DirectoryTarget(Path(text).expanduser().absolute(), label=text)


def _bad(text: str) -> RequestError:
    return RequestError(
        f"{text[:200]!r} is no target",
        code="bad_target",
        fix="give a directory, file:///DIRECTORY, s3://BUCKET/PREFIX or memory://NAME",
    )
