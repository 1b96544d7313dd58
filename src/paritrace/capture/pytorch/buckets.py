"""Which parameters' gradients lie in a storage: seen from what is written while gradients are accumulated (CA-31).

DDP's reducer copies each gradient into its bucket, or lets it live there, under the parameter's own `AccumulateGrad`
node; a hook that compresses the bucket reads it whole. Storages are known by weak references (CA-34).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

from paritrace.capture.pytorch.internals import free_weak_storage, storage_behind, storage_id, weak_storage

NO_GUARD = 0
_CLEARS = frozenset({"zero", "fill"})  # the reducer clears the places of unused parameters under another one's node


@dataclass(slots=True)
class Bucket:
    """A storage that holds gradients: the parameter at each address, or those of the bucket it was made from."""

    weak: int
    at: dict[int, str] = field(default_factory=dict[int, str])
    copied: tuple[str, ...] = ()
    origin: int = NO_GUARD  # identity of the bucket's storage, when this is a copy of it


class Buckets:
    """Storages with gradients met so far."""

    def __init__(self) -> None:
        self._buckets: dict[int, Bucket] = {}

    def accumulated(self, owner: str, numel: int, base: str, written: Iterable[torch.Tensor]) -> None:
        """A call under a parameter's `AccumulateGrad` node has written these; `numel` is the parameter's."""
        if base in _CLEARS:
            return
        for tensor in written:
            if numel and _has_storage(tensor) and tensor.numel() == numel:
                bucket = self._bucket(tensor)
                if not bucket.copied:
                    bucket.at[tensor.data_ptr()] = owner

    def copied(self, read: object, made: object) -> None:
        """A call under such a node has made `made` of `read`: perhaps the whole bucket in another dtype."""
        if not self._buckets or not isinstance(read, torch.Tensor) or not isinstance(made, torch.Tensor):
            return
        if not _has_storage(read) or not _has_storage(made) or made.numel() != read.numel():
            return
        bucket = self._buckets.get(storage_id(read))
        if bucket is None or storage_id(made) == storage_id(read) or not _is_whole(read):
            return
        names = self.parameters(read)
        if names:
            copy = self._bucket(made)
            copy.at.clear()
            copy.copied, copy.origin = names, bucket.origin or storage_id(read)

    def parameters(self, tensor: torch.Tensor) -> tuple[str, ...]:
        """The parameters whose gradients lie in a tensor, in the order they lie there."""
        bucket = self._buckets.get(storage_id(tensor))
        if bucket is None:
            return ()
        if bucket.copied:
            return bucket.copied
        begin = tensor.data_ptr()
        end = begin + tensor.numel() * tensor.itemsize
        return tuple(bucket.at[address] for address in sorted(bucket.at) if begin <= address < end)

    def known(self, tensor: torch.Tensor) -> int:
        """Weak reference of a bucket's storage; it stays this register's."""
        return self._bucket(tensor).weak

    def guard(self, tensor: torch.Tensor) -> int:
        """Weak reference of the bucket that a tensor was copied from; it stays this register's."""
        bucket = self._buckets.get(storage_id(tensor))
        origin = None if bucket is None else self._buckets.get(bucket.origin)
        return NO_GUARD if origin is None else origin.weak

    def step_ended(self) -> None:
        """Forget storages that are gone."""
        for identity in [identity for identity, bucket in self._buckets.items() if storage_behind(bucket.weak) is None]:
            free_weak_storage(self._buckets.pop(identity).weak)

    def forget(self) -> None:
        for bucket in self._buckets.values():
            free_weak_storage(bucket.weak)
        self._buckets.clear()

    def _bucket(self, tensor: torch.Tensor) -> Bucket:
        identity = storage_id(tensor)
        found = self._buckets.get(identity)
        if found is None:
            found = self._buckets[identity] = Bucket(weak_storage(tensor))
        return found


def _is_whole(tensor: Any) -> bool:
    return bool(tensor.numel() * tensor.itemsize == tensor.untyped_storage().nbytes())


def _has_storage(tensor: torch.Tensor) -> bool:
    """Whether a tensor lies in one storage: a sparse or nested one does not, and asking it for one is an error."""
    return tensor.layout is torch.strided and not tensor.is_nested
