"""What only object storage does: parts, broken reads, 409s, refusals in words, reading back after a doubt (ST-8a)."""

import hashlib
import secrets
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paritrace.errors import EvidenceError, HostError, RequestError
from paritrace.store.targets import Put, is_transient, open_target
from paritrace.store.targets.s3 import S3Target, open_s3
from paritrace.store.throttle import Throttle
from paritrace.testing.clocks import ManualClock
from tests.store.targets.places import S3Place
from tests.store.targets.s3_server import Proxy, client_of, s3_server

DATA = secrets.token_bytes(11 << 20)
SHA256 = hashlib.sha256(DATA).hexdigest()
LEAST_PART_BYTES = 5 << 20  # the service's


@pytest.fixture(scope="module")
def proxy() -> Iterator[Proxy]:
    pytest.importorskip("boto3")
    pytest.importorskip("moto")
    with s3_server() as port, Proxy(port) as proxy:
        yield proxy


@pytest.fixture
def place(proxy: Proxy) -> S3Place:
    return S3Place(proxy, f"bucket-{secrets.token_hex(6)}")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "bundle"
    path.write_bytes(DATA)
    return path


def put(target: S3Target, source: Path) -> Put:
    return target.put_if_absent("one", source, sha256=SHA256, throttle=Throttle(None))


@pytest.mark.slow
def test_a_large_object_is_put_in_parts_and_under_the_same_condition(place: S3Place, source: Path) -> None:
    place.proxy.faults.append(("PUT", "torn"))
    target = place.target(parts_above_bytes=LEAST_PART_BYTES)
    assert [put(target, source), put(target, source)] == [Put.PUBLISHED, Put.ALREADY_THERE]
    assert place.objects() == {"one": DATA}
    assert place.client.list_multipart_uploads(Bucket=place.bucket).get("Uploads", []) == []


@pytest.mark.slow
@pytest.mark.parametrize("parts_above", [LEAST_PART_BYTES, 1 << 30])
def test_a_source_that_changed_leaves_nothing(place: S3Place, source: Path, parts_above: int) -> None:
    source.write_bytes(DATA[:-1] + bytes([DATA[-1] ^ 1]))
    with pytest.raises(EvidenceError) as caught:
        put(place.target(parts_above_bytes=parts_above), source)
    assert caught.value.code == "staged_bytes_changed"
    assert place.objects() == {}


@pytest.mark.slow
def test_a_read_that_breaks_goes_on_where_it_broke(place: S3Place, source: Path) -> None:
    put(place.target(), source)
    place.proxy.faults.extend([("GET", "cut"), ("GET", "cut")])
    assert b"".join(place.target().read("one")) == DATA
    place.proxy.faults.append(("GET", "always cut"))
    with pytest.raises(HostError) as caught:
        list(place.target().read("one"))
    assert is_transient(caught.value)


@pytest.mark.slow
def test_a_conflict_of_two_puts_at_once_is_tried_again(place: S3Place, source: Path) -> None:
    place.proxy.faults.extend([("PUT", "409"), ("PUT", "409")])
    assert put(place.target(), source) is Put.PUBLISHED
    assert place.objects() == {"one": DATA}


@pytest.mark.slow
def test_a_busy_service_is_transient_and_in_words(place: S3Place, source: Path) -> None:
    place.proxy.faults.append(("PUT", "always 503"))
    with pytest.raises(HostError) as caught:
        put(place.target(), source)
    assert (caught.value.code, is_transient(caught.value)) == ("target_unreachable", True)
    assert len([seen for seen in place.proxy.seen if seen == "PUT 503"]) <= 3


@pytest.mark.slow
def test_a_service_that_is_not_there_is_transient_and_a_bucket_that_is_not_there_is_named(
    place: S3Place, source: Path
) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        client = client_of(nobody.getsockname()[1])
        with pytest.raises(HostError) as caught:
            put(S3Target(place.bucket, "", client=client, clock=ManualClock()), source)
    assert (caught.value.code, is_transient(caught.value)) == ("target_unreachable", True)
    with pytest.raises(HostError) as caught:
        put(S3Target("none-such-bucket", "", client=place.client, clock=ManualClock()), source)
    assert (caught.value.code, is_transient(caught.value)) == ("no_bucket", False)


class ShortPages:
    """A client whose pages hold three names."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def list_objects_v2(self, **asked: Any) -> Any:
        return self._client.list_objects_v2(**asked, MaxKeys=3)


@pytest.mark.slow
def test_more_than_a_page_is_listed(place: S3Place) -> None:
    for number in range(10):
        place.client.put_object(Bucket=place.bucket, Key=f"runs/one/a/{number}", Body=b"")
    target = S3Target(place.bucket, "runs/one", client=ShortPages(place.client))
    assert [entry.name for entry in target.list("a/")] == [f"a/{number}" for number in range(10)]


@pytest.mark.parametrize("rest", ["", "B", "bucket/../x", "user:key@bucket/x", "bucket//x", "bucket/a\nb"])
def test_addresses_that_are_none_are_refused(rest: str) -> None:
    with pytest.raises(RequestError) as caught:
        open_s3(rest, client=lambda: None)
    assert caught.value.code == "bad_target"


def test_a_label_names_bucket_and_prefix() -> None:
    assert open_s3("bucket/runs/one/", client=lambda: None).label == "s3://bucket/runs/one"


@pytest.mark.parametrize("text", ["", "ftp://x", "memory://", "s3://"])
def test_texts_that_are_no_target(text: str) -> None:
    with pytest.raises(RequestError) as caught:
        open_target(text)
    assert caught.value.code == "bad_target"
