"""Names of published objects: which are allowed, which are hidden, and what their digest says."""

from pathlib import PurePosixPath

from paritrace.errors import EvidenceError, RequestError

BUNDLES_FOLDER = ".paritrace-bundles"  # the one hidden folder whose content is published
MAX_NAME_CHARACTERS = 900  # S3 allows 1,024 bytes with the prefix
_SHOWN_CHARACTERS = 200


def checked_name(name: str) -> str:
    """Return a name that stays below its target: relative, of ordinary parts.

    Raises:
        RequestError: Refused, code `bad_object_name`.
    """
    parts = name.split("/")
    plain = all(part not in ("", ".", "..") for part in parts) and name.isprintable() and "\\" not in name
    if not plain or len(name) > MAX_NAME_CHARACTERS or is_hidden(name):
        raise RequestError(
            f"{name[:_SHOWN_CHARACTERS]!r} is no name below a target",
            code="bad_object_name",
            fix="report this: names of bundles are made from checked ids",
        )
    return name


def is_hidden(name: str) -> bool:
    """Whether readers pass over a name: a part of it begins with a dot, but for the folder of bundles."""
    return any(part.startswith(".") and part != BUNDLES_FOLDER for part in PurePosixPath(name).parts)


def names_its_bytes(name: str, sha256: str) -> bool:
    """Whether only these bytes can have the name, because their digest is a part of it (ST-8)."""
    return sha256 in name


def conflict(label: str, name: str, *, found: str, wanted: str) -> EvidenceError:
    """The error for a name that has other bytes than were to be published."""
    return EvidenceError(
        f"{label}: {name} is there with other bytes (SHA-256 {found[:12]}…, not {wanted[:12]}…)",
        code="target_conflict",
        fix="another node has this node id, or the object was damaged: see `paritrace store verify`",
    )
