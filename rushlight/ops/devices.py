"""The device on which an operator runs, by those of its arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rushlight.core.device import device
from rushlight.core.tensor import Tensor
from rushlight.ops.dispatcher import OpOverload

# Operators that read tensors of two devices.
_BETWEEN_DEVICES = frozenset(("copy_", "_to_copy", "to"))
# Operators whose second argument is a list of indices, which may be on the CPU.
INDEXING = frozenset(("index", "index_put_", "_index_put_impl_", "index_put"))


def tensors_in(values: Sequence) -> Iterator[Tensor]:
    """Yield the tensors in arguments, which may be lists."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from tensors_in(value)


def common_device(op: OpOverload, args: Sequence) -> device:
    """Return the device of an operator's tensors, of which one at least is on a GPU. RuntimeError where they are on several,
    except CPU tensors without dimensions and indices."""
    if op._opname in INDEXING and len(args) > 1:
        _check_indices(args[0]._impl.device, args[1])
        args = (args[0], *args[2:])
    given = list(tensors_in(args))
    if op._opname in _BETWEEN_DEVICES:
        return given[0]._impl.device
    places = dict.fromkeys(tensor._impl.device for tensor in given if tensor._impl.device.type != "cpu" or tensor._impl.sizes)
    if len(places) > 1:
        names = " and ".join(sorted(map(str, places), key=lambda name: name == "cpu"))
        raise RuntimeError(f"Expected all tensors to be on the same device, but found at least two devices, {names}!")
    return next(iter(places))


def _check_indices(place: device, indices: Sequence) -> None:
    """Raise RuntimeError unless all indices are on the CPU or on the device of the tensor that they index."""
    if any(index._impl.device.type != "cpu" and index._impl.device != place for index in tensors_in(indices)):
        raise RuntimeError(f"indices should be either on cpu or on the same device as the indexed tensor ({place})")
