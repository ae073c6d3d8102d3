"""Read and write sparse tensors in checkpoints: `torch._utils._rebuild_sparse_tensor`.

In: a layout and the parts of a tensor. Out: the tensor, after every claim was checked; and the arguments for writing one.
"""

from __future__ import annotations

import threading
from typing import Any

from rushlight.core.layout import layout, sparse_coo, sparse_csc, sparse_csr, strided
from rushlight.core.lazy_module import LazyModule
from rushlight.core.size import Size
from rushlight.core.tensor import Tensor
from rushlight.serialization.errors import CheckpointError, UnpicklingError

sparse, sparse_layout = LazyModule("rushlight.sparse"), LazyModule("rushlight.sparse.layout")
_COUNTS = {sparse_coo: (2, (3, 4)), sparse_csr: (3, (4,)), sparse_csc: (3, (4,))}


class _Waiting(threading.local):
    tensors: list[tuple[layout, tuple]] | None = None


_waiting = _Waiting()


class values_follow:  # noqa: N801 - reads as a statement
    """A block in which storages are filled only at its end, so sparse tensors made in it are checked then."""

    def __enter__(self) -> None:
        self._before, _waiting.tensors = _waiting.tensors, []

    def __exit__(self, kind: type | None, *error: object) -> None:
        made, _waiting.tensors = _waiting.tensors or [], self._before
        for claims in made if kind is None else ():
            _make_sparse(*claims)


def rebuild_sparse(kind: layout, parts: tuple) -> Tensor:
    """Return the tensor of a file's claims; UnpicklingError where they don't fit one another."""
    if kind not in _COUNTS:
        raise UnpicklingError(f"sparse tensors of the layout {kind} are not supported")
    tensors, lengths = _COUNTS[kind]
    if len(parts) not in lengths or not all(_is_plain(each) for each in parts[:tensors]):
        raise UnpicklingError(f"a tensor of layout {kind} has parts of an unknown form")
    if not isinstance(parts[tensors], tuple) or not all(type(each) is int and 0 <= each < 1 << 62 for each in parts[tensors]):
        raise UnpicklingError(f"a tensor of layout {kind} has a size that is no tuple of lengths")
    if _waiting.tensors is None:
        return _make_sparse(kind, parts)
    _waiting.tensors.append((kind, parts))
    size = tuple(parts[tensors])
    if kind is not sparse_coo:
        return sparse_layout.make_compressed(*parts[:3], size, kind)
    if parts[0].dim() != 2:
        raise UnpicklingError(f"indices must be sparse_dim x nnz, but are of size {list(parts[0].shape)}")
    return sparse_layout.make_sparse(*parts[:2], size, parts[3:] == (True,))


def _make_sparse(kind: layout, parts: tuple) -> Tensor:
    try:
        if kind is not sparse_coo:
            return sparse.sparse_compressed_tensor(*parts[:4], layout=kind)
        made = sparse.sparse_coo_tensor(*parts[:3])
        return made.coalesce() if len(parts) == 4 and parts[3] is True else made
    except (RuntimeError, ValueError, OverflowError, IndexError, TypeError) as error:
        raise CheckpointError(f"the parts of a tensor of layout {kind} do not fit one another: {error}") from None


def _is_plain(part: Any) -> bool:
    return isinstance(part, Tensor) and part.layout is strided and part.device.type == "cpu"


def sparse_arguments(tensor: Tensor) -> tuple:
    """Return the arguments of `_rebuild_sparse_tensor`."""
    kind, size = tensor.layout, Size(tensor.shape)
    if kind is sparse_coo:
        return kind, (tensor._indices(), tensor._values(), size, tensor.is_coalesced())
    by_rows = kind is sparse_csr
    compressed, plain = (tensor.crow_indices, tensor.col_indices) if by_rows else (tensor.ccol_indices, tensor.row_indices)
    return kind, (compressed(), plain(), tensor.detach().values(), size)
