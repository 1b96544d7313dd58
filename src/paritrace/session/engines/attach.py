"""The engine `attach`: ranks that a launcher started, torchrun for one, dial in (SE-16)."""

from paritrace.files import LOCAL, Files
from paritrace.session.engines.addresses import LOOPBACK, Address
from paritrace.session.engines.dialled import DialledEngine
from paritrace.session.engines.listening import Listener
from paritrace.session.engines.rendezvous import publish, withdraw
from paritrace.session.engines.seam import ExitEvidence, RankSpec


class AttachEngine(DialledEngine):
    """Ranks dial in with the token of the session. Nothing here ends one: training goes on without us.

    `address`: to listen on. Others than the loopback are for ranks on several machines: the line is not encrypted, so
    the network has to be trusted as far as the launcher's own is.
    """

    def __init__(self, *, address: Address = LOOPBACK, files: Files = LOCAL) -> None:
        super().__init__()
        self._address = address
        self._files = files

    @property
    def stops_ranks(self) -> bool:
        return False

    def start(self, spec: RankSpec) -> None:
        """Begin to wait for ranks. Raises HostError: `cannot_listen`, or the directory cannot be written."""
        self._spec = spec
        self._listener = Listener(spec, address=self._address)
        publish(self._files, spec, host=self._address.host, port=self._listener.port)

    def terminate(self, rank: int) -> None:
        """Nothing: its launcher's to do."""

    def kill(self, rank: int) -> None:
        """Nothing: its launcher's to do."""

    def exit_evidence(self, rank: int) -> ExitEvidence:
        """Return what is known now: a status only of this machine, and where the kernel tells it to others."""
        one = self._listening().ranks.get(rank)
        if one is None:
            return ExitEvidence(rank=rank, pid=None, wait=None, launcher_owned=True, words="it has not joined")
        return ExitEvidence(
            rank=rank,
            pid=one.joined.pid,
            wait=one.wait,
            launcher_owned=True,
            line_closed=one.told,
        )

    def close(self) -> None:
        """Let go of every line; whoever trains goes on."""
        if self._listener is not None:
            self._listener.close()
            withdraw(self._files, self._required())
        self._waker.close()
