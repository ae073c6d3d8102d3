"""The base class of `Module` that calls it, with hooks around `forward` and in the backward pass."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from rushlight.nn.modules import global_hooks
from rushlight.nn.modules.backward_hooks import BackwardBoundary, attach_legacy_hooks
from rushlight.utils.hooks import RemovableHandle

_GLOBAL_HOOK_IDS = global_hooks.call_hooks


class ModuleHooks:
    """Calls `forward` with the module's hooks around it."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if (
            self._forward_hooks
            or self._forward_pre_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or _GLOBAL_HOOK_IDS
        ):
            return self._call_with_hooks(args, kwargs)
        return self.forward(*args, **kwargs)

    _call_impl = __call__

    def _call_with_hooks(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        called: set[int] = set()
        try:
            return self._run_all(args, kwargs, called)
        except Exception:
            self._call_hooks_after_failure(args, kwargs, called)
            raise

    def _run_all(self, args: tuple, kwargs: dict[str, Any], called: set[int]) -> Any:
        args, kwargs = self._run_forward_pre_hooks(args, kwargs)
        boundary = BackwardBoundary.around(self)
        if boundary is not None:
            args = boundary.enter(args)
        result = self.forward(*args, **kwargs)
        for number, hook in [*global_hooks.forward_hooks.items(), *self._forward_hooks.items()]:
            called.add(number)
            changed = self._call_forward_hook(number, hook, args, kwargs, result)
            result = result if changed is None else changed
        if self._is_full_backward_hook is False:
            attach_legacy_hooks(self, result)
        return result if boundary is None else boundary.leave(result)

    def _run_forward_pre_hooks(self, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        for number, hook in [*global_hooks.forward_pre_hooks.items(), *self._forward_pre_hooks.items()]:
            if number in self._forward_pre_hooks_with_kwargs:
                changed = hook(self, args, kwargs)
                if changed is not None:
                    if not (isinstance(changed, tuple) and len(changed) == 2):
                        raise RuntimeError(
                            "forward pre-hook must return None or a tuple of (new_args, new_kwargs), "
                            f"but got {changed}."
                        )
                    args, kwargs = changed
            else:
                changed = hook(self, args)
                if changed is not None:
                    args = changed if isinstance(changed, tuple) else (changed,)
        return args, kwargs

    def _call_forward_hook(self, number: int, hook: Callable, args: tuple, kwargs: dict, result: Any) -> Any:
        if number in self._forward_hooks_with_kwargs or number in global_hooks.with_kwargs_flags:
            return hook(self, args, kwargs, result)
        return hook(self, args, result)

    def _call_hooks_after_failure(self, args: tuple, kwargs: dict[str, Any], called: set[int]) -> None:
        """Call the `always_call` hooks that have not run yet, with None as the result."""
        flags = {**global_hooks.always_call_flags, **self._forward_hooks_always_called}
        for number, hook in [*global_hooks.forward_hooks.items(), *self._forward_hooks.items()]:
            if number in flags and number not in called:
                try:
                    self._call_forward_hook(number, hook, args, kwargs, None)
                except Exception as error:
                    warnings.warn(
                        f"a forward hook with always_call=True raised {error!r}, which is ignored because another "
                        "error was raised before it",
                        stacklevel=3,
                    )

    def register_forward_pre_hook(
        self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args)` before `forward`; it may return new arguments (a tuple, or a single one).

        With `with_kwargs`: `hook(module, args, kwargs)`, which may return a pair of both. `prepend` puts it before
        the hooks registered earlier.
        """
        handle = RemovableHandle(self._forward_pre_hooks, extra_dict=self._forward_pre_hooks_with_kwargs)
        _insert(self._forward_pre_hooks, handle, hook, prepend)
        if with_kwargs:
            self._forward_pre_hooks_with_kwargs[handle.id] = True
        return handle

    def register_forward_hook(
        self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args, output)` after `forward`; it may return a new output.

        With `with_kwargs`: `hook(module, args, kwargs, output)`. With `always_call` also after an error, with None as
        the output. `prepend` puts it before the hooks registered earlier.
        """
        flags = [self._forward_hooks_with_kwargs, self._forward_hooks_always_called]
        handle = RemovableHandle(self._forward_hooks, extra_dict=flags)
        _insert(self._forward_hooks, handle, hook, prepend)
        if with_kwargs:
            self._forward_hooks_with_kwargs[handle.id] = True
        if always_call:
            self._forward_hooks_always_called[handle.id] = True
        return handle

    def register_full_backward_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_output)` before the backward pass goes through the module.

        It may return a new `grad_output`. Gradients come as tuples, one per positional output.
        """
        handle = RemovableHandle(self._backward_pre_hooks)
        _insert(self._backward_pre_hooks, handle, hook, prepend)
        return handle

    def register_full_backward_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` when the gradients of the module's inputs are known.

        It may return a new `grad_input`. Both are tuples with None for what is no tensor or needs no gradient. Raises
        RuntimeError if the module has hooks of `register_backward_hook`.
        """
        self._choose_backward_hooks(True)
        handle = RemovableHandle(self._backward_hooks)
        _insert(self._backward_hooks, handle, hook, prepend)
        return handle


    def register_backward_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` when the node that made the module's output has run.

        Deprecated: the hook sees the gradients of that one operation only. Prefer `register_full_backward_hook`. Raises
        RuntimeError if the module has hooks of that.
        """
        self._choose_backward_hooks(False)
        handle = RemovableHandle(self._backward_hooks)
        self._backward_hooks[handle.id] = hook
        return handle

    def _choose_backward_hooks(self, full: bool) -> None:
        if self._is_full_backward_hook is (not full) and self._backward_hooks:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. "
                "Please use only one of them."
            )
        self._is_full_backward_hook = full


def _insert(hooks: OrderedDict, handle: RemovableHandle, hook: Callable, prepend: bool) -> None:
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
