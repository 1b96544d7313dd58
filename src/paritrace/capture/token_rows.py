"""What `paritrace.rows` returns: a batch's rows, for tensors that the workload names itself (CP-27)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import torch

    from paritrace.capture.addresses import Addresses


class RowSink(Protocol):
    """Takes the rows of a tensor; `held` and `let_go` bound a `with` block."""

    def observe(self, addresses: Addresses, name: str, tensor: torch.Tensor, semantics: str | None) -> None: ...
    def hold(self, addresses: Addresses) -> None: ...
    def let_go(self) -> None: ...


class Rows:
    """The tokens of a batch. Without a capture, or where the rows could not be told, everything here does nothing.

    As a plain call the rows are those of the next forward of a root module; in a `with` block, of everything inside.
    Index it as the batch's token dims to speak of a part: `rows[:, 1:].observe("logprobs", t)`.
    """

    def __init__(self, addresses: Addresses | None = None, sink: RowSink | None = None) -> None:
        self._addresses = addresses
        self._sink = sink

    def observe(self, name: str, tensor: torch.Tensor, *, semantics: str | None = None) -> None:
        """Record the rows of a tensor under a name of your own.

        Args:
            tensor: its first dims are those of the rows (or their product); what is left over is one row.
            semantics: what the numbers mean where that could be mistaken (`raw_logprobs`, `after_temperature`); rows
                with unlike tags are not compared (A-11).

        A tensor with other rows is a counted gap, `rows_not_addressed`.
        """
        if self._sink is not None and self._addresses is not None:
            self._sink.observe(self._addresses, name, tensor, semantics)

    def __getitem__(self, key: Any) -> Rows:
        return self if self._addresses is None else Rows(self._addresses[key], self._sink)

    def __enter__(self) -> Rows:
        if self._sink is not None and self._addresses is not None:
            self._sink.hold(self._addresses)
        return self

    def __exit__(self, *_: object) -> None:
        if self._sink is not None and self._addresses is not None:
            self._sink.let_go()
