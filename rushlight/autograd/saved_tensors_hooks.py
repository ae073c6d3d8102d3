"""Hooks on what nodes save for the backward pass: `pack` when a tensor is saved, `unpack` when it is needed again."""

from __future__ import annotations

from collections.abc import Callable

from rushlight.autograd.grad_mode import Mode
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state


class saved_tensors_hooks:
    """Context manager: for tensors saved in the block, nodes keep the result of `pack_hook(tensor)`.

    `unpack_hook` turns it back into the tensor in the backward pass, with the same values, shape and dtype; it may be called
    several times, and must not write to the tensor. Only the innermost hooks apply. RuntimeError where hooks are disabled.
    """

    def __init__(self, pack_hook: Callable[[Tensor], object], unpack_hook: Callable[[object], Tensor]):
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self):
        check_allowed()
        state.saved_tensor_hooks = (*state.saved_tensor_hooks, (self.pack_hook, self.unpack_hook))

    def __exit__(self, *error: object):
        state.saved_tensor_hooks = state.saved_tensor_hooks[:-1]


class save_on_cpu(saved_tensors_hooks):
    """Context manager: tensors saved in the block wait in the CPU's memory, and go back to their device when needed.

    `pin_memory` and `device_type` are accepted for compatibility.
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda"):
        super().__init__(lambda tensor: (tensor.device, tensor.cpu()), lambda packed: packed[1].to(packed[0]))


class disable_saved_tensors_hooks(Mode):
    """Context manager and decorator: hooks on saved tensors raise RuntimeError with `error_message` in the block."""

    def __init__(self, error_message: str, prior_hooks_allowed: bool = False):
        self.error_message = error_message

    def _fresh(self) -> disable_saved_tensors_hooks:
        return disable_saved_tensors_hooks(self.error_message)

    def __enter__(self):
        self._previous = state.saved_tensor_hooks
        if any(not isinstance(hooks, str) for hooks in self._previous):
            raise RuntimeError(self.error_message)
        state.saved_tensor_hooks = (*self._previous, self.error_message)

    def __exit__(self, *error: object):
        state.saved_tensor_hooks = self._previous


def check_allowed() -> None:
    """Raise RuntimeError if hooks are disabled, with the message given there."""
    if state.saved_tensor_hooks and isinstance(state.saved_tensor_hooks[-1], str):
        raise RuntimeError(state.saved_tensor_hooks[-1])


def active_hooks() -> tuple[Callable, Callable] | None:
    """Return the pair (pack, unpack) of hooks that apply to a tensor saved now, or None."""
    hooks = state.saved_tensor_hooks[-1] if state.saved_tensor_hooks else None
    return hooks if isinstance(hooks, tuple) else None
