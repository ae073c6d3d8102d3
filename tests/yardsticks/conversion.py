"""Shared by the operator yardsticks: converts torch's sample arguments to Rushlight's, and both libraries' results to NumPy
arrays."""

from __future__ import annotations

import dataclasses
import functools
import types
from collections.abc import Callable, Iterator

import numpy as np
import torch

import rushlight

# Values that mean the same to both libraries.
_PLAIN = (int, float, complex, bool, str, slice, type(None), type(Ellipsis), np.generic, np.ndarray)


class Unconvertible(Exception):
    """An argument that has no counterpart in Rushlight, independent of the operator."""


class Converter:
    """Turns a sample's arguments into Rushlight's; tensors over one storage become tensors over one storage.

    `leaves` collects the pairs (torch's, ours) of tensors that require gradients.
    """

    def __init__(self):
        self.leaves: list[tuple[torch.Tensor, rushlight.Tensor]] = []
        self._storages: dict[tuple[int, torch.dtype], rushlight.Tensor] = {}

    def __call__(self, value: object) -> object:
        """The counterpart of one argument; raises Unconvertible if there is none."""
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, torch.dtype | torch.memory_format | torch.layout):
            return getattr(rushlight, str(value).split(".")[1])
        if isinstance(value, torch.device):
            return rushlight.device(str(value))
        if isinstance(value, torch.Size):
            return rushlight.Size(value)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*[self(item) for item in value])
        if isinstance(value, torch.nn.LinearCrossEntropyOptions):
            fields = (field.name for field in dataclasses.fields(value))
            return rushlight.nn.LinearCrossEntropyOptions(**{name: self(getattr(value, name)) for name in fields})
        if isinstance(value, torch.nn.Module):
            return functools.partial(rebound(type(value).forward), value)
        if isinstance(value, list | tuple):
            return type(value)(self(item) for item in value)
        if isinstance(value, dict):
            return {key: self(item) for key, item in value.items()}
        if isinstance(value, _PLAIN) or (callable(value) and not isinstance(value, torch.Generator)):
            return value
        raise Unconvertible(f"argument of type {type(value).__name__}")

    def _tensor(self, value: torch.Tensor) -> rushlight.Tensor:
        kind = getattr(rushlight, str(value.dtype).split(".")[1], None)
        if value.layout not in (torch.strided, torch.sparse_csr) or value.is_quantized or kind is None or value.dim() > 64:
            raise Unconvertible(f"tensor of layout {value.layout}, dtype {value.dtype}, rank {value.dim()}")
        if value.device.type == "meta":
            return rushlight.empty_strided(tuple(value.shape), value.stride(), dtype=kind, device="meta")
        plain = value.detach()
        made = self._csr(plain) if value.layout == torch.sparse_csr else self._strided(plain.resolve_conj().resolve_neg())
        if value.requires_grad:
            made.requires_grad_(True)
            self.leaves.append((value, made))
        return made

    def _strided(self, plain: torch.Tensor) -> rushlight.Tensor:
        return self._whole_storage(plain).as_strided(tuple(plain.shape), plain.stride(), plain.storage_offset()).detach()

    def _csr(self, plain: torch.Tensor) -> rushlight.Tensor:
        parts = (self._strided(part) for part in (plain.crow_indices(), plain.col_indices(), plain.values()))
        return rushlight.sparse_csr_tensor(*parts, tuple(plain.shape))

    def _whole_storage(self, plain: torch.Tensor) -> rushlight.Tensor:
        """All elements of the tensor's storage, as a vector."""
        storage = plain.untyped_storage()
        key = (storage.data_ptr() or id(plain), plain.dtype)
        if key not in self._storages:
            count = storage.nbytes() // plain.element_size()
            flat = torch.empty(0, dtype=plain.dtype).set_(storage, 0, (count,), (1,))
            narrow = plain.dtype == torch.bfloat16
            made = rushlight.from_numpy(np.array((flat.float() if narrow else flat).numpy()))
            self._storages[key] = made.to(rushlight.bfloat16) if narrow else made
        return self._storages[key]


def tensors_in(value: object, kind: type) -> Iterator:
    """The tensors of class `kind`, and numbers, in nested results, in order."""
    if isinstance(value, kind) or isinstance(value, int | float | complex):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors_in(item, kind)
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item, kind)


def as_array(value: object) -> np.ndarray:
    """A tensor's or number's value as an array. bfloat16 becomes float32, complex32 complex64, and sparse tensors dense, as
    NumPy lacks them."""
    if not isinstance(value, torch.Tensor | rushlight.Tensor):
        return np.asarray(value)
    library = torch if isinstance(value, torch.Tensor) else rushlight
    plain = value.detach() if value.layout == library.strided else value.detach().to_dense()
    wider = {library.bfloat16: library.float32, library.complex32: library.complex64}
    return np.asarray(plain.to(wider.get(plain.dtype, plain.dtype)).numpy(force=True))


def counterpart(op) -> Callable | None:
    """Rushlight's function for an OpInfo, found by its dotted name; None where there is none.

    OpInfo's own helpers (which permute arguments or call a method) are run with `torch` in their globals replaced.
    """
    if isinstance(op.op, types.FunctionType) and op.op.__module__.startswith("torch.testing._internal"):
        return rebound(op.op)
    if type(op.op).__name__ in ("method_descriptor", "getset_descriptor"):
        return getattr(rushlight.Tensor, op.op.__name__, None)
    found = _attribute(rushlight, op.name) or _attribute(rushlight.Tensor, op.name)
    return found if callable(found) else None


def _attribute(owner: object, dotted: str) -> object:
    try:
        return functools.reduce(getattr, dotted.split("."), owner)
    except AttributeError:
        return None


def rebound(function: types.FunctionType) -> Callable:
    """A function of torch's with torch's modules in its globals replaced by Rushlight's."""
    names = dict(function.__globals__)
    for name, value in function.__globals__.items():
        if isinstance(value, types.ModuleType) and value.__name__.split(".")[0] == "torch":
            ours = _attribute(rushlight, value.__name__[6:]) if value is not torch else rushlight
            names[name] = ours or value
    made = types.FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made
