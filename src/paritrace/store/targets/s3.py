"""S3-compatible object storage as target: one conditional put, read back after every doubt (ST-8a, ST-14, ADR 0026)."""

import hashlib
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from paritrace.clock import SYSTEM, Clock
from paritrace.errors import HostError, ParitraceError, RequestError
from paritrace.files import LOCAL, Files
from paritrace.store.targets.naming import checked_name, conflict, is_hidden
from paritrace.store.targets.protocol import READ_CHUNK_BYTES, Entry, Put
from paritrace.store.targets.s3_body import PacedBody
from paritrace.store.targets.s3_errors import failures, means_absent, means_taken, translated
from paritrace.store.throttle import Throttle

PARTS_ABOVE_BYTES = 1 << 30  # one request up to here; parts above, so that a broken connection costs one part
PART_BYTES = 64 << 20
MAX_PARTS = 10_000  # the service's own limit
NUM_PUTS = 4  # after a 409, which says that another put of the name is under way
WAIT_SECONDS = 0.5  # between those, growing: 0.5 + 1 + 1.5 s in all
LOOKS_SECONDS = (0.1, 0.4, 1.0)  # not every service lists and finds a new object at once (EV-12): 1.5 s in all
NUM_READS = 4  # a broken read goes on where it broke

_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_PREFIX = re.compile(r"[A-Za-z0-9._=+@ -]+(/[A-Za-z0-9._=+@ -]+)*")


class S3Target:
    """A bucket, or what is below a prefix of it. `client` is a boto3 client; nothing is removed but a probe's trial."""

    def __init__(
        self,
        bucket: str,
        prefix: str,
        *,
        client: Any,
        files: Files = LOCAL,
        clock: Clock = SYSTEM,
        parts_above_bytes: int = PARTS_ABOVE_BYTES,
    ) -> None:
        self.label = f"s3://{bucket}/{prefix}" if prefix else f"s3://{bucket}"
        self._bucket = bucket
        self._above = f"{prefix}/" if prefix else ""
        self._client = client
        self._files = files
        self._clock = clock
        self._parts_above_bytes = parts_above_bytes

    def list(self, prefix: str, /) -> Iterator[Entry]:
        """As `Target` says."""
        asked: dict[str, Any] = {"Bucket": self._bucket, "Prefix": self._above + prefix}
        while True:
            with translated(self.label, "list"):
                page = self._client.list_objects_v2(**asked)
            for row in page.get("Contents", ()):
                name = row["Key"][len(self._above) :]
                if name and not name.endswith("/") and not is_hidden(name):
                    yield Entry(name, row["Size"])
            if not page.get("IsTruncated"):
                return
            asked["ContinuationToken"] = page["NextContinuationToken"]

    def put_if_absent(self, name: str, source: Path, /, *, sha256: str, throttle: Throttle, checksum: str = "") -> Put:
        """As `Target` says. The library tries again, a bounded number of times, what service or network failed."""
        checked_name(name)
        for number in range(1, NUM_PUTS + 1):
            try:
                self._send(name, source, sha256=sha256, checksum=checksum, throttle=throttle)
                return Put.PUBLISHED
            except failures() as cause:
                if self._is_there(name, sha256, after=cause):
                    return Put.ALREADY_THERE
                if not means_taken(cause) or number == NUM_PUTS:
                    with translated(self.label, f"put {name} to"):
                        raise
            self._clock.sleep(WAIT_SECONDS * number)
        raise AssertionError("the last put returns or raises")

    def read(self, name: str, /) -> Iterator[bytes]:
        """As `Target` says; a connection that breaks is taken up where it broke, on the same object."""
        reply = self._found(checked_name(name))
        size, tag, offset = reply["ContentLength"], reply["ETag"], 0
        for reads_left in reversed(range(NUM_READS)):
            with suppress(*(failures() if reads_left else ())), translated(self.label, f"read {name} of"):
                while chunk := reply["Body"].read(READ_CHUNK_BYTES):
                    offset += len(chunk)
                    yield chunk
            if offset >= size or not reads_left:
                break
            with translated(self.label, f"read {name} of"):
                reply = self._client.get_object(
                    Bucket=self._bucket, Key=self._above + name, Range=f"bytes={offset}-", IfMatch=tag
                )
        if offset != size:
            raise HostError(
                f"{self.label}: {name} gave {offset} bytes of {size}",
                code="short_read",
                fix="the connection broke again and again: try again later",
            )

    def drop_leftovers(self, folder: str, /) -> None:
        """Nothing is visible or in the way before it is whole."""

    def probe(self) -> None:
        """As `Target` says; the trial's object is removed again."""
        key = f"{self._above}.paritrace-probe-{secrets.token_hex(8)}"
        try:
            for data in (b"probe", b"other"):
                with translated(self.label, "try out a put to"):
                    self._client.put_object(Bucket=self._bucket, Key=key, Body=data, IfNoneMatch="*")
        except HostError as error:
            if error.code != "already_there":
                raise
            return
        finally:
            with suppress(ParitraceError), translated(self.label, "remove a trial from"):
                self._client.delete_object(Bucket=self._bucket, Key=key)
        raise HostError(
            f"{self.label} accepts a second object under one name",
            code="overwriting_target",
            fix="choose a service with conditional writes (If-None-Match), or a directory",
        )

    def _send(self, name: str, source: Path, *, sha256: str, checksum: str, throttle: Throttle) -> None:
        size = self._files.size(source)
        told = {"sha256": sha256, "checksum": checksum}
        with PacedBody(source, size, throttle=throttle, files=self._files, **told) as body:
            where = {"Bucket": self._bucket, "Key": self._above + name}
            if size > self._parts_above_bytes:
                self._send_parts(where, body, size)
            else:
                self._client.put_object(**where, Body=body, ContentLength=size, IfNoneMatch="*", **body.checksum())

    def _send_parts(self, where: dict[str, str], body: PacedBody, size: int) -> None:
        part_bytes = max(min(PART_BYTES, self._parts_above_bytes), -(-size // MAX_PARTS))
        upload = where | {"UploadId": self._client.create_multipart_upload(**where)["UploadId"]}
        try:
            parts: list[dict[str, object]] = []
            for number, start in enumerate(range(0, size, part_bytes), start=1):
                length = min(part_bytes, size - start)
                with body.part(start, length):
                    done = self._client.upload_part(**upload, PartNumber=number, Body=body, ContentLength=length)
                parts.append({"PartNumber": number, "ETag": done["ETag"]})
            body.require_whole()
            self._client.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts}, IfNoneMatch="*")
        except BaseException:
            with suppress(*failures()):
                self._client.abort_multipart_upload(**upload)
            raise

    def _is_there(self, name: str, sha256: str, *, after: BaseException) -> bool:
        """Read back after a failed put: it may have been done, and its reply lost. False where nothing has the name."""
        if isinstance(after, ParitraceError):
            raise after
        try:
            digest = hashlib.sha256()
            reply = self._client.get_object(Bucket=self._bucket, Key=self._above + name)
            while chunk := reply["Body"].read(READ_CHUNK_BYTES):
                digest.update(chunk)
        except failures() as cause:
            if means_absent(cause) or not means_taken(after):
                return False
            with translated(self.label, f"read back {name} of"):
                raise
        if digest.hexdigest() != sha256:
            raise conflict(self.label, name, found=digest.hexdigest(), wanted=sha256)
        return True

    def _found(self, name: str) -> dict[str, Any]:
        for pause in (*LOOKS_SECONDS, None):
            try:
                reply: dict[str, Any] = self._client.get_object(Bucket=self._bucket, Key=self._above + name)
            except failures() as cause:
                if not means_absent(cause) or pause is None:
                    with translated(self.label, f"read {name} of"):
                        raise
                self._clock.sleep(pause)
            else:
                return reply
        raise AssertionError("the last look returns or raises")


def open_s3(rest: str, *, client: Callable[[], Any] | None = None) -> S3Target:
    """Return the target of `BUCKET/PREFIX`; endpoint, region and credentials come from the environment.

    Raises:
        RequestError: Refused, code `bad_target`.
        HostError: Refused, code `missing_extra`.
    """
    bucket, _, prefix = rest.partition("/")
    prefix = prefix.rstrip("/")
    if _BUCKET.fullmatch(bucket) is None or (prefix and _PREFIX.fullmatch(prefix) is None) or ".." in prefix:
        raise RequestError(
            f"s3://{rest[:200]!r} is no bucket with a prefix",
            code="bad_target",
            fix="give s3://BUCKET/PREFIX; credentials and endpoint come from the environment, never from the address",
        )
    if client is None:
        from paritrace.store.targets.s3_client import client_from_environment

        client = client_from_environment
    return S3Target(bucket, prefix, client=client())
