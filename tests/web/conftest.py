"""Fixtures of the tests of the web view: a folder of runs and a comparison, and a client that has the token."""

from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from paritrace.reports.shelf import key_of
from paritrace.web.application import application
from tests.web.shelves import write_pair

TOKEN = "the-right-token"
ORIGIN = "http://127.0.0.1:8123"

Served = Callable[[Path], TestClient]


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kept comparison of two runs; the folder that holds all is `pair.parents[3]`."""
    return write_pair(tmp_path_factory.mktemp("pair"))


@pytest.fixture(scope="session")
def served() -> Served:
    """`served(path)`: a client of an application over a path, which shows the token as programs do."""

    def client(path: Path) -> TestClient:
        app = application(path, token=TOKEN, origin=ORIGIN)
        headers = {"Authorization": f"Bearer {TOKEN}"}
        return TestClient(app, base_url=ORIGIN, headers=headers, raise_server_exceptions=False, follow_redirects=False)

    return client


@pytest.fixture(scope="session")
def over_the_pair(pair: Path, served: Served) -> TestClient:
    return served(pair.parents[3])


@pytest.fixture
def client(over_the_pair: TestClient) -> TestClient:
    """A client over the folder with both runs and their comparison, without the cookie of an earlier test."""
    over_the_pair.cookies.clear()
    return over_the_pair


@pytest.fixture(scope="session")
def home(pair: Path) -> str:
    """The address of the comparison's page."""
    return f"/c/{key_of(pair)}/"
