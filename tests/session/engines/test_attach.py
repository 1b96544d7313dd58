import json
import os
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest
from jsonschema import Draft202012Validator

from paritrace.cli.schema import schema_text
from paritrace.errors import HostError, RequestError
from paritrace.process.stop_facts import Exited, Signalled
from paritrace.session.coordinator.engines import engine_of
from paritrace.session.engines.addresses import Address, address_of
from paritrace.session.engines.attach import AttachEngine
from paritrace.session.engines.lines import GONE_AFTER_SECONDS, ends_with_its_machine
from paritrace.session.engines.rendezvous import NAME, Rendezvous, dialled, joined_as, rendezvous_in
from paritrace.session.messages import Halt, Joined, from_rank, to_rank
from tests.session.engines.conformance import DEADLINE_SECONDS, SOON_SECONDS, Conformance, Ranks, within
from tests.session.engines.test_local import spec_in

CHILD = "import sys; from tests.session.engines.serves import dial_in; sys.exit(dial_in({folder!r}, {rank}, 2))"


class Launched(Ranks):
    """Ranks that this test starts, as a launcher does, and waits for."""

    def __init__(self, engine: AttachEngine, folder: Path) -> None:
        super().__init__(engine, spec_in(folder))
        self.attach = engine
        self.processes: list[subprocess.Popen[bytes]] = []

    def launch(self) -> None:
        for rank in range(self.spec.world_size):
            code = CHILD.format(folder=self.spec.directory, rank=rank)
            path = os.pathsep.join(one or os.getcwd() for one in sys.path)
            self.processes.append(
                subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path})
            )

    def wait_of(self, rank: int) -> Exited | Signalled:
        """As its launcher knows it; what the engine says is that or nothing, as the kernel has it."""
        code = self.processes[rank].wait(DEADLINE_SECONDS)
        found = Exited(code) if code >= 0 else Signalled(-code)
        assert self.engine.exit_evidence(rank).wait in (None, found)
        return found


@pytest.fixture
def ranks(tmp_path: Path) -> Generator[Launched]:
    engine = AttachEngine()
    launched = Launched(engine, tmp_path)
    with ExitStack() as ends:
        ends.callback(engine.close)
        engine.start(launched.spec)
        launched.launch()
        for process in launched.processes:
            ends.callback(process.wait)
            ends.callback(process.kill)
        launched.joined()
        yield launched


class TestAttach(Conformance):
    """The engine `attach` under the suite of all engines."""

    @pytest.mark.slow
    def test_se16_ranks_are_their_launchers_and_live_on_when_control_ends(self, ranks: Launched) -> None:
        assert not ranks.engine.stops_ranks
        ranks.engine.terminate(0)
        ranks.engine.kill(0)
        assert ranks.asked(0, "echo alive") == "alive"
        assert ranks.engine.exit_evidence(0).launcher_owned
        ranks.engine.close()
        assert [process.wait(SOON_SECONDS * 4) for process in ranks.processes] == [7, 7]  # their own way out

    def test_f18_a_stale_participant_is_rejected_at_join_and_its_first_word_is_brought(self, ranks: Launched) -> None:
        found = msgspec.structs.replace(rendezvous_in(Path(ranks.spec.directory)), generation=0)
        why = rejected(ranks, found, rank=1)
        assert why == "stale participant rejected (generation 0 of job 'job-1' in generation 1 of job 'job-1')"
        stale = ranks.next(1)
        assert stale is not None
        word = from_rank(stale)
        assert isinstance(word, Joined)
        assert word.generation == 0
        assert ranks.asked(1, "echo undisturbed") == "undisturbed"

    def test_f18_another_job_is_rejected_though_its_generation_is_the_same(self, ranks: Launched) -> None:
        found = msgspec.structs.replace(rendezvous_in(Path(ranks.spec.directory)), job_id="job-0")
        assert rejected(ranks, found, rank=1).startswith("stale participant rejected (generation 1 of job 'job-0'")
        assert ranks.engine.receive(0.0) == []

    def test_se16_a_second_process_for_a_rank_is_rejected(self, ranks: Launched) -> None:
        found = rendezvous_in(Path(ranks.spec.directory))
        assert rejected(ranks, found, rank=0) == "rank 0 has joined already"
        assert rejected(ranks, found, rank=0) == "rank 0 has joined already"
        assert [one.times for one in ranks.engine.turned_away] == [2]

    def test_se16_whoever_lacks_the_token_learns_nothing(self, ranks: Launched) -> None:
        found = msgspec.structs.replace(rendezvous_in(Path(ranks.spec.directory)), token="guess", generation=9)
        assert rejected(ranks, found, rank=0) == "the token is not that of this session"

    def test_se16_the_rendezvous_is_its_owners_alone_and_gone_at_the_end(self, ranks: Launched, tmp_path: Path) -> None:
        assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o600
        schema = Draft202012Validator(json.loads(schema_text("session-rendezvous")))
        schema.validate(json.loads((tmp_path / NAME).read_bytes()))
        ranks.engine.close()
        with pytest.raises(RequestError) as caught:
            rendezvous_in(tmp_path)
        assert caught.value.code == "no_rendezvous"


def rejected(ranks: Launched, found: Rendezvous, *, rank: int) -> str:
    """Dial in with these facts; returns why that was turned away, once the line is closed."""
    line = dialled(found.host, found.port, joined_as(found, rank=rank, world_size=2))
    answers: list[bytes] = []
    before = _times(ranks)

    def answered() -> bool:
        ranks.keep()
        if _times(ranks) == before:
            return False
        answers.extend(line.receive(SOON_SECONDS) or [])
        return bool(answers)

    within(answered)
    word = to_rank(answers[0])
    assert isinstance(word, Halt)
    within(lambda: line.receive(SOON_SECONDS) is None)
    last = ranks.attach.turned_away[-1]
    assert (last.why, last.address, last.rank) == (word.why, "127.0.0.1", rank)
    line.close()
    return word.why


def _times(ranks: Launched) -> int:
    return sum(one.times for one in ranks.attach.turned_away)


def test_se16_a_coordinator_that_is_gone_is_said_to_be_so(tmp_path: Path) -> None:
    engine = AttachEngine()
    engine.start(spec_in(tmp_path))
    found = rendezvous_in(tmp_path)
    engine.close()
    with pytest.raises(HostError) as caught:
        dialled(found.host, found.port, joined_as(found, rank=0, world_size=2))
    assert caught.value.code == "coordinator_not_reached"


def test_se16_an_address_of_another_machine_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HostError) as caught:
        AttachEngine(address=Address("203.0.113.7")).start(spec_in(tmp_path))
    assert caught.value.code == "cannot_listen"


def test_se12_a_rank_that_never_joined_is_said_to_be_so(tmp_path: Path) -> None:
    engine = AttachEngine()
    engine.start(spec_in(tmp_path))
    assert engine.exit_evidence(1).words == "it has not joined"
    assert not engine.send(1, b"anything")
    assert engine.dump_stacks((0, 1)) == {}
    engine.close()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10.0.0.1", Address("10.0.0.1", 0)),
        ("10.0.0.1:7000", Address("10.0.0.1", 7000)),
        ("[fd00::1]:7000", Address("fd00::1", 7000)),
        ("fd00::1", Address("fd00::1", 0)),
    ],
)
def test_se16_an_address_to_listen_on_has_a_port_or_not(text: str, expected: Address) -> None:
    assert address_of(text) == expected


@pytest.mark.parametrize(
    "text", ["0.0.0.0:7000", "[::]:7", "host:7000", "10.0.0.1:x", "10.0.0.1:70000", ":7000", "", "224.0.0.1"]
)
def test_se16_an_address_that_no_rank_could_dial_is_refused(text: str) -> None:
    with pytest.raises(RequestError) as caught:
        address_of(text)
    assert caught.value.code == "bad_listen"


def test_se16_only_attach_listens() -> None:
    with pytest.raises(RequestError) as caught:
        engine_of("local", listen="127.0.0.1:0")
    assert caught.value.code == "bad_listen"


def test_se16_ranks_are_taken_on_an_address_of_ipv6_too(tmp_path: Path) -> None:
    engine = AttachEngine(address=Address("::1"))
    engine.start(spec_in(tmp_path))
    found = rendezvous_in(tmp_path)
    line = dialled(found.host, found.port, joined_as(found, rank=1, world_size=2))
    within(lambda: [one.rank for one in engine.receive(SOON_SECONDS)] == [1])
    line.close()
    engine.close()


@pytest.mark.parametrize("written", [b"\0\0\0\2hi", b"\xff" * 64, b"", b"GET / HTTP/1.1\r\n\r\n"])
def test_se16_whoever_writes_anything_and_goes_at_once_does_no_harm(tmp_path: Path, written: bytes) -> None:
    engine = AttachEngine()
    engine.start(spec_in(tmp_path))
    found = rendezvous_in(tmp_path)
    with socket.create_connection((found.host, found.port)) as end:
        end.sendall(written)
    within(lambda: not engine.receive(SOON_SECONDS) and bool(engine.turned_away))
    assert engine.receive(0.0) == []
    assert [(one.why, one.rank) for one in engine.turned_away] == [("it did not say who it is", None)]
    line = dialled(found.host, found.port, joined_as(found, rank=1, world_size=2))
    within(lambda: [one.rank for one in engine.receive(SOON_SECONDS)] == [1])
    line.close()
    engine.close()


def test_se16_a_machine_that_acknowledges_nothing_is_given_up_by_tcp_on_both_ends() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.create_connection(listening.getsockname()) as end:
        ends_with_its_machine(end)
        assert end.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        told = [end.getsockopt(socket.IPPROTO_TCP, one) for one in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL)]
        assert told == [5, 5]
        assert end.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == GONE_AFTER_SECONDS * 1000
