"""Files that are there whole or not at all, also after a kill or a power cut."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any


def sha256_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def encoded(document: Any) -> bytes:
    return json.dumps(document, indent=2, sort_keys=True, allow_nan=False).encode() + b"\n"


def replace(path: Path, data: bytes) -> None:
    """Write a file whole; who can read it is the user alone, since requests hold values of the environment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.new")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    beside.replace(path)
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
