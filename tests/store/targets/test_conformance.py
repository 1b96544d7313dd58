"""One suite for every kind of target: list, put-if-absent, torn uploads, retries, permission, slowness (ST-14)."""

import hashlib
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from paritrace.errors import EvidenceError, HostError, ParitraceError, RequestError
from paritrace.store.targets import Entry, Put, Target, is_transient
from paritrace.store.throttle import CHUNK_BYTES, Throttle
from paritrace.testing.clocks import ManualClock
from tests.store.targets.places import DirectoryPlace, MemoryPlace, Place, S3Place
from tests.store.targets.s3_server import Proxy, s3_server

DATA = bytes(range(256)) * 3000  # several chunks, the last one not full
SHA256 = hashlib.sha256(DATA).hexdigest()
NAME = f".paritrace-bundles/node-a/0/00000001-{SHA256}.tar.zst"
FREE = Throttle(None)


@pytest.fixture(scope="module")
def proxy() -> Iterator[Proxy]:
    pytest.importorskip("boto3")
    pytest.importorskip("moto")
    with s3_server() as port, Proxy(port) as proxy:
        yield proxy


@pytest.fixture(params=["directory", "memory", pytest.param("s3", marks=pytest.mark.slow)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "directory":
        return DirectoryPlace(tmp_path / "target")
    if request.param == "memory":
        return MemoryPlace()
    return S3Place(request.getfixturevalue("proxy"), f"bucket-{secrets.token_hex(6)}")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "bundle"
    path.write_bytes(DATA)
    return path


def put(target: Target, source: Path, name: str = NAME) -> Put:
    return target.put_if_absent(name, source, sha256=hashlib.sha256(source.read_bytes()).hexdigest(), throttle=FREE)


def until_done(act: Callable[[], Put], *, tries: int = 3) -> tuple[Put, list[ParitraceError]]:
    """Try as a sync does: again after a transient error."""
    met: list[ParitraceError] = []
    for _ in range(tries):
        try:
            return act(), met
        except HostError as error:
            if not is_transient(error):
                raise
            met.append(error)
    raise AssertionError(met)


def test_what_is_put_is_listed_and_read_back(place: Place, source: Path) -> None:
    target = place.target()
    assert list(target.list("")) == []
    assert put(target, source) is Put.PUBLISHED
    assert list(target.list(".paritrace-bundles/")) == [Entry(NAME, len(DATA))]
    chunks = list(target.read(NAME))
    assert b"".join(chunks) == DATA
    assert max(map(len, chunks)) <= 1 << 20
    assert place.objects() == {NAME: DATA}


def test_an_empty_object_is_one(place: Place, tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    assert put(place.target(), tmp_path / "empty", "owner") is Put.PUBLISHED
    assert list(place.target().list("")) == [Entry("owner", 0)]
    assert list(place.target().read("owner")) in ([], [b""])


def test_names_come_in_the_order_of_their_bytes(place: Place, tmp_path: Path) -> None:
    names = ["a-b", "a/1", "a/10", "a/2", "a0", "b/c/d", "b/c-d"]
    target = place.target()
    for name in reversed(names):
        (tmp_path / "one").write_text(name)
        put(target, tmp_path / "one", name)
    assert [entry.name for entry in target.list("")] == sorted(names)
    assert [entry.name for entry in target.list("a/1")] == ["a/1", "a/10"]
    assert [entry.name for entry in target.list("b/c")] == ["b/c-d", "b/c/d"]
    assert [entry.name for entry in target.list("b/c/")] == ["b/c/d"]
    assert list(target.list("none/")) == []


def test_a_second_put_of_the_same_bytes_is_already_there(place: Place, source: Path) -> None:
    assert [put(place.target(), source), put(place.target(), source)] == [Put.PUBLISHED, Put.ALREADY_THERE]


@pytest.mark.parametrize("name", ["node-a/owner.json", NAME])
def test_other_bytes_under_one_name_are_refused_and_the_first_stay(place: Place, source: Path, name: str) -> None:
    put(place.target(), source, name)
    source.write_bytes(b"other")
    with pytest.raises(EvidenceError) as caught:
        put(place.target(), source, name)
    assert caught.value.code == "target_conflict"
    assert place.objects() == {name: DATA}


def test_a_source_with_other_bytes_than_recorded_is_not_published(place: Place, source: Path) -> None:
    source.write_bytes(DATA[:-1] + b"?")
    with pytest.raises(EvidenceError) as caught:
        place.target().put_if_absent(NAME, source, sha256=SHA256, throttle=FREE)
    assert caught.value.code == "staged_bytes_changed"
    assert place.objects() == {}


def test_a_torn_upload_is_not_visible_and_the_next_try_publishes(place: Place, source: Path) -> None:
    target = place.torn()
    ended, _ = until_done(lambda: put(target, source))
    assert ended is Put.PUBLISHED
    assert place.objects() == {NAME: DATA}


def test_a_lost_reply_is_no_second_object(place: Place, source: Path) -> None:
    target = place.lost_reply()
    ended, met = until_done(lambda: put(target, source))
    assert ended is (Put.ALREADY_THERE if met else ended)
    assert place.objects() == {NAME: DATA}


def test_without_permission_nobody_tries_again(place: Place, source: Path) -> None:
    with pytest.raises(HostError) as caught:
        put(place.denied(), source)
    assert (caught.value.code, is_transient(caught.value)) == ("not_permitted", False)
    assert place.objects() == {}


def test_what_cannot_be_found_for_a_while_is_found_later(place: Place) -> None:
    target, found = place.late("node-a/owner.json", DATA), b""
    for _ in range(2):
        try:
            found = b"".join(target.read("node-a/owner.json"))
            break
        except HostError as error:
            if not is_transient(error):
                raise
    assert found == DATA


def test_what_is_never_found_is_not_called_absent(place: Place) -> None:
    with pytest.raises(HostError) as caught:
        list(place.target().read("node-a/owner.json"))
    assert caught.value.code == "not_visible_here"


def test_a_slow_rate_is_kept(place: Place, source: Path) -> None:
    clock = ManualClock()
    target = place.target()
    target.put_if_absent(NAME, source, sha256=SHA256, throttle=Throttle(CHUNK_BYTES, clock=clock))
    assert sum(clock.slept_seconds) == pytest.approx(len(DATA) / CHUNK_BYTES - 1, abs=1.0)


@pytest.mark.parametrize(
    "name", ["", "/etc/x", "../x", "a/../b", "a//b", "a/./b", "a\nb", "a\\b", ".hidden", "x" * 999]
)
def test_names_that_leave_the_target_are_refused(place: Place, source: Path, name: str) -> None:
    for act in (lambda: put(place.target(), source, name), lambda: list(place.target().read(name))):
        with pytest.raises(RequestError) as caught:
            act()
        assert caught.value.code == "bad_object_name"
    assert place.objects() == {}


def test_a_target_that_keeps_the_first_put_passes_the_probe(place: Place) -> None:
    place.target().probe()
    assert list(place.target().list("")) == []


def test_a_target_that_accepts_a_second_put_is_refused_by_name(place: Place) -> None:
    target = place.overwriting()
    if target is None:
        pytest.skip("this kind of target cannot be made to overwrite")
    with pytest.raises(HostError) as caught:
        target.probe()
    assert caught.value.code == "overwriting_target"
    assert target.label in caught.value.message
