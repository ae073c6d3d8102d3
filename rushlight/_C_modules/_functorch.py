"""`torch._C._functorch`: what a tensor inside of vmap hides."""

from __future__ import annotations

from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.ops.batching.layout import is_batched, levels_of, make_batched, value_of
from rushlight.ops.batching.levels import Level, add_batch_dim, remove_batch_dim

__all__ = [
    "current_level", "get_unwrapped", "is_batchedtensor", "is_functorch_wrapped_tensor", "maybe_current_level",
    "maybe_get_bdim", "maybe_get_level",
]  # fmt: skip

is_batchedtensor = is_batched
is_functorch_wrapped_tensor = is_batched


def is_legacy_batchedtensor(tensor: Tensor) -> bool:
    """False: there is one kind of vmap."""
    return False


def is_gradtrackingtensor(tensor: Tensor) -> bool:
    """False: transforms that differentiate do not wrap tensors here."""
    return False


def maybe_current_level() -> int | None:
    """The number of the innermost call of vmap that runs; None outside."""
    return state.batch_levels[-1].number if state.batch_levels else None


def current_level() -> int:
    """The number of the innermost call of vmap that runs. RuntimeError outside."""
    return _level(None).number


def _level(number: int | None) -> Level:
    for level in reversed(state.batch_levels):
        if number is None or level.number == number:
            return level
    raise RuntimeError("no vmap is running" if number is None else f"no vmap of level {number} is running")


def maybe_get_level(tensor: Tensor) -> int:
    """The innermost level that is mapped over a tensor; -1 for none."""
    return max(levels_of(tensor), default=-1)


def maybe_get_bdim(tensor: Tensor) -> int:
    """The dimension that the innermost level hides, in what `get_unwrapped` gives; -1 for none."""
    return 0 if is_batched(tensor) else -1


def get_unwrapped(tensor: Tensor) -> Tensor:
    """A tensor with the dimension that its innermost level hides as its first one. RuntimeError where none is hidden."""
    if not is_batched(tensor):
        raise RuntimeError("No wrappers present!")
    return make_batched(value_of(tensor), levels_of(tensor)[:-1])


def _add_batch_dim(tensor: Tensor, batch_dim: int, level: int) -> Tensor:
    """`tensor` with a dimension hidden, as that of a call of vmap that runs. RuntimeError where that does not run."""
    return add_batch_dim(tensor, batch_dim, _level(level))


def _remove_batch_dim(tensor: Tensor, level: int, batch_size: int, out_dim: int) -> Tensor:
    """`tensor` with the hidden dimension of a level shown at `out_dim`. RuntimeError where `batch_size` is not the level's."""
    found = _level(level)
    if found.size != batch_size:
        raise RuntimeError(f"_remove_batch_dim: level {level} has {found.size} examples, got batch_size={batch_size}")
    return remove_batch_dim(tensor, found, out_dim)
