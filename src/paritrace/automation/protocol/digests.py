"""The digest of a result, so that a result given back is known to be as it left (AU-16)."""

import json
from typing import cast

from paritrace.automation.protocol.records import Result
from paritrace.evidence.digests import sha256_hex
from paritrace.reports.documents import encoded


def digest_of(document: dict[str, object]) -> str:
    """Return the SHA-256 of a result as JSON without `digest`: keys sorted, no spaces, ASCII, 1.0 spelt 1.

    The spelling does not depend on who parsed and wrote the document in between.
    """
    plain = _plain({key: value for key, value in document.items() if key != "digest"})
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return sha256_hex(text.encode())


def sealed(result: Result) -> dict[str, object]:
    """Return a result as the plain JSON object that goes out, with its digest."""
    document = cast("dict[str, object]", json.loads(encoded(result)))
    return document | {"digest": digest_of(document)}


def _plain(value: object) -> object:
    match value:
        case dict():
            return {key: _plain(item) for key, item in cast("dict[str, object]", value).items()}
        case list():
            return [_plain(item) for item in cast("list[object]", value)]
        case float() if value.is_integer():
            return int(value)
        case _:
            return value
