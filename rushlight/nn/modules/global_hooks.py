"""Global hooks: every module runs them before its own hooks, on calls and on registrations.

They serve debugging and profiling. Each registration returns a handle that removes the hook.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from rushlight.utils.hooks import RemovableHandle

_lock = threading.Lock()

forward_pre_hooks: OrderedDict[int, Callable] = OrderedDict()
forward_hooks: OrderedDict[int, Callable] = OrderedDict()
with_kwargs_flags: OrderedDict[int, bool] = OrderedDict()
always_call_flags: OrderedDict[int, bool] = OrderedDict()
backward_pre_hooks: OrderedDict[int, Callable] = OrderedDict()
backward_hooks: OrderedDict[int, Callable] = OrderedDict()
# The ids of all call hooks: a call only checks whether this is empty.
call_hooks: OrderedDict[int, bool] = OrderedDict()
parameter_registration_hooks: OrderedDict[int, Callable] = OrderedDict()
buffer_registration_hooks: OrderedDict[int, Callable] = OrderedDict()
module_registration_hooks: OrderedDict[int, Callable] = OrderedDict()


def _register(hooks: OrderedDict, hook: Callable, *flags: OrderedDict) -> RemovableHandle:
    with _lock:
        handle = RemovableHandle(hooks, extra_dict=list(flags))
        for flag in flags:
            flag[handle.id] = True
        hooks[handle.id] = hook
    return handle


def register_module_forward_pre_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, args)` before every module's forward; it may return new arguments."""
    return _register(forward_pre_hooks, hook, call_hooks)


def register_module_forward_hook(
    hook: Callable, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call `hook(module, args, output)`, with kwargs before output if `with_kwargs`, after every module's forward.

    It may return a new output. With `always_call` it runs after an error too, with None as the output.
    """
    flags = [call_hooks, *[with_kwargs_flags] * with_kwargs, *[always_call_flags] * always_call]
    return _register(forward_hooks, hook, *flags)


def register_module_full_backward_pre_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, grad_output)` before the backward pass goes through any module; it may return a new one."""
    return _register(backward_pre_hooks, hook, call_hooks)


def register_module_full_backward_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` when the gradients of any module's inputs are known."""
    return _register(backward_hooks, hook, call_hooks)


def register_module_parameter_registration_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, name, parameter)` whenever a module gets a parameter; it may return another."""
    return _register(parameter_registration_hooks, hook)


def register_module_buffer_registration_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, name, buffer)` whenever a module gets a buffer; it may return another."""
    return _register(buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, name, submodule)` whenever a module gets a submodule; it may return another."""
    return _register(module_registration_hooks, hook)


def as_hooks_wish(hooks: OrderedDict[int, Callable], module: Any, name: str, value: Any) -> Any:
    """Return `value` after all hooks of one kind of registration have had their turn."""
    for hook in list(hooks.values()):
        changed = hook(module, name, value)
        value = value if changed is None else changed
    return value
