"""What must hold of a store at every moment, and a rank's life with syncs in it, for the crash drills (ST-15)."""

from collections.abc import Callable
from pathlib import Path

from paritrace.errors import ParitraceError
from paritrace.files import Files
from paritrace.store.cursor import load
from paritrace.store.verifying import StoreVerdict, verify_store
from paritrace.testing.faults import Stopped
from tests.store.places import QUICK, Place
from tests.store.reading import manifests, streams

BATCH_BYTES = 600  # several bundles out of some lines
JOURNAL, TENSOR = "calls.jsonl", "tensors/one.bin"


def record(number: int) -> bytes:
    return b'{"number":%d,"text":"%s"}\n' % (number, b"x" * (number % 37))


def life(place: Place, files: Files) -> None:
    """Write, sync, write on, sync, rewrite a whole file, end; what is written comes from the rank, not from us."""
    place.append(JOURNAL, b"".join(map(record, range(30))) + b'{"torn')
    place.write(TENSOR, b"first" * 40)
    place.syncer(files=files, batch_bytes=BATCH_BYTES).once()
    place.append(JOURNAL, b'":1}\n' + b"".join(map(record, range(30, 40))))
    place.syncer(files=files, batch_bytes=BATCH_BYTES).once()
    place.write(TENSOR, b"second" * 40)
    place.syncer(files=files, batch_bytes=BATCH_BYTES).final()


def survived(place: Place, files: Files, act: Callable[[Place, Files], None] = life) -> BaseException | None:
    """What the syncing process was ended by; the kernel lets go of its locks and files."""
    try:
        act(place, files)
    except (Stopped, ParitraceError) as error:
        return error
    return None


def check_visible(place: Place) -> None:
    """Published is a verified contiguous prefix; each stream is a prefix of its source that ends in a newline."""
    if not place.bundles():
        return
    found = verify_store(place.target())
    assert found.verdict is not StoreVerdict.DAMAGED, found.problems
    assert [one.sequence for one in manifests(place)] == list(range(1, len(manifests(place)) + 1))
    source = (place.originals / JOURNAL).read_bytes()
    published = streams(place).get((JOURNAL, 1), b"")
    assert source.startswith(published)
    assert published.endswith(b"\n") or not published


def check_checkpoint(place: Place) -> None:
    """The checkpoint is never ahead of what is published; `load` refuses one that is."""
    if place.staged.checkpoint.exists():
        token = load(place.staged, place.target(), token=_token(place), files=QUICK)
        assert token.progress.bundles <= len(place.bundles())


def _token(place: Place) -> str:
    import msgspec

    return str(msgspec.json.decode(place.staged.owner.read_bytes())["token"])


def check_after(place: Place) -> None:
    """One more final sync, and everything that is complete is there exactly once; then nothing is left to do."""
    place.final(batch_bytes=BATCH_BYTES)
    source = (place.originals / JOURNAL).read_bytes()
    found = streams(place)
    assert found[JOURNAL, 1] == source[: source.rfind(b"\n") + 1]
    assert [version for origin, version in found if origin == JOURNAL] == [1]
    tensors = sorted(version for origin, version in found if origin == TENSOR)
    assert found[TENSOR, tensors[-1]] == (place.originals / TENSOR).read_bytes()
    before = place.bundles()
    assert place.final(batch_bytes=BATCH_BYTES).published_bytes == 0
    assert place.bundles() == before
    assert verify_store(place.target()).verdict is StoreVerdict.INTACT
    assert leftovers(place.store) == []


def leftovers(folder: Path) -> list[Path]:
    """Hidden temporaries that anybody who lists a target as we do would see."""
    return [path for path in folder.rglob("*.tmp") if not path.name.startswith(".paritrace-")]
