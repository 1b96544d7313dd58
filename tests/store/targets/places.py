"""Places that the conformance suite runs against: each offers a target, its troubles, and what is really there."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from paritrace.errors import HostError
from paritrace.files import Files, Primitives
from paritrace.store.targets import Target
from paritrace.store.targets.directory import DirectoryTarget
from paritrace.store.targets.memory import MemoryTarget
from paritrace.store.targets.s3 import PARTS_ABOVE_BYTES, S3Target
from paritrace.testing.clocks import ManualClock
from paritrace.testing.faults import ErrnoFiles, Fault, FaultyFiles
from tests.store.targets.s3_server import Proxy, client_of


class Place(Protocol):
    """A target with its troubles: each method returns a target of the same place, on which the next put meets it."""

    def target(self) -> Target: ...

    def torn(self) -> Target:
        """The connection, or the disk, fails in the middle of the upload, once."""
        ...

    def denied(self) -> Target: ...

    def lost_reply(self) -> Target:
        """The put is done, and nobody learns of it."""
        ...

    def late(self, name: str, data: bytes) -> Target:
        """The object cannot be found the first time it is looked for."""
        ...

    def overwriting(self) -> Target | None:
        """A target that accepts a second put; None where there can be none."""
        ...

    def objects(self) -> dict[str, bytes]:
        """What is visible, seen by other means than the target's."""
        ...


class DirectoryPlace:
    """A folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def target(self) -> Target:
        return DirectoryTarget(self.root, clock=ManualClock())

    def torn(self) -> Target:
        return DirectoryTarget(self.root, files=TornOnce(), clock=ManualClock())

    def denied(self) -> Target:
        return DirectoryTarget(self.root, files=ErrnoFiles(operation="open", number=errno.EACCES))

    def lost_reply(self) -> Target:
        return DirectoryTarget(self.root, files=Files(_RepeatedRename()))

    def late(self, name: str, data: bytes) -> Target:
        return DirectoryTarget(self.root, clock=Appearing(lambda: _written(self.root / name, data)))

    def overwriting(self) -> Target | None:
        return DirectoryTarget(self.root, files=Files(_Overwriting()))

    def objects(self) -> dict[str, bytes]:
        files = [path for path in self.root.rglob("*") if path.is_file() and not path.name.startswith(".")]
        return {path.relative_to(self.root).as_posix(): path.read_bytes() for path in files}


class TornOnce(FaultyFiles):
    """The first write takes half of its bytes, the next one says EIO; later ones are as ever."""

    def __init__(self) -> None:
        super().__init__(at=10**9, fault=Fault.TEAR, number=errno.EIO)
        before = self.faulty.before

        def first_write(operation: str, path: str) -> None:
            if operation == "write" and self.faulty._at == 10**9:
                self.faulty._at = self.faulty.count + 1
            before(operation, path)

        self.faulty.before = first_write  # type: ignore[method-assign]


class _RepeatedRename(Primitives):
    """A network file system that sends a rename twice: the second finds nothing to rename."""

    def rename(self, source: Path, target: Path) -> None:
        super().rename(source, target)
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(source))


class _Overwriting(Primitives):
    """A file system whose link replaces what has the name."""

    def link(self, source: Path, target: Path) -> None:
        target.unlink(missing_ok=True)
        super().link(source, target)


class Appearing(ManualClock):
    """Something happens while the waiter sleeps."""

    def __init__(self, happens: Callable[[], None]) -> None:
        super().__init__()
        self._happens = happens

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self._happens()


def _written(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


class MemoryPlace:
    """A dictionary."""

    def __init__(self) -> None:
        self._objects: dict[str, bytes] = {}

    def target(self) -> MemoryTarget:
        return MemoryTarget("test", objects=self._objects)

    def _with(self, code: str, *, loses_reply: bool = False) -> Target:
        target = self.target()
        target.faults.append(HostError("told to fail", code=code, fix="none"))
        target.loses_reply = loses_reply
        return target

    def torn(self) -> Target:
        return self._with("target_unreachable")

    def denied(self) -> Target:
        return self._with("not_permitted")

    def lost_reply(self) -> Target:
        return self._with("target_unreachable", loses_reply=True)

    def late(self, name: str, data: bytes) -> Target:
        target = self._with("not_visible_here")
        self._objects[name] = data
        return target

    def overwriting(self) -> Target | None:
        return None

    def objects(self) -> dict[str, bytes]:
        return dict(self._objects)


class S3Place:
    """A bucket of a local server, behind a proxy."""

    def __init__(self, proxy: Proxy, bucket: str) -> None:
        self.proxy = proxy
        self.bucket = bucket
        proxy.client = proxy.client or client_of(proxy.port)
        self.client = proxy.client
        proxy.faults.clear()
        proxy.seen.clear()
        self.client.create_bucket(Bucket=bucket)

    def target(self, *, parts_above_bytes: int = PARTS_ABOVE_BYTES) -> S3Target:
        return S3Target(
            self.bucket,
            "runs/one",
            client=self.client,
            clock=ManualClock(),
            parts_above_bytes=parts_above_bytes,
        )

    def _with(self, method: str, *faults: str) -> Target:
        self.proxy.faults.extend((method, fault) for fault in faults)
        return self.target()

    def torn(self) -> Target:
        return self._with("PUT", "torn")

    def denied(self) -> Target:
        return self._with("PUT", "always 403")

    def lost_reply(self) -> Target:
        return self._with("PUT", "reply lost")

    def late(self, name: str, data: bytes) -> Target:
        self.client.put_object(Bucket=self.bucket, Key=f"runs/one/{name}", Body=data)
        return self._with("GET", "404")

    def overwriting(self) -> Target | None:
        return self._with("PUT", "overwrites", "overwrites")

    def objects(self) -> dict[str, bytes]:
        self.proxy.faults.clear()
        rows = self.client.list_objects_v2(Bucket=self.bucket).get("Contents", ())
        return {
            row["Key"].removeprefix("runs/one/"): self.client.get_object(Bucket=self.bucket, Key=row["Key"])[
                "Body"
            ].read()
            for row in rows
        }
