"""`torch.fx.experimental.proxy_tensor`: `make_fx` with PyTorch's signature, implemented by `rushlight/fx/proxy_tensor.py`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from rushlight.core.pytree import tree_flatten
from rushlight.core.thread_state import state
from rushlight.fx import proxy_tensor
from rushlight.fx.graph_module import GraphModule
from rushlight.nn.modules.module import Module
from rushlight.ops.dispatcher import OpOverload

__all__ = ["get_proxy_mode", "make_fx"]


def make_fx(
    f: Callable, decomposition_table: Mapping[OpOverload, Callable] | None = None, tracing_mode: str = "real",
    _allow_non_fake_inputs: bool = False, *, pre_dispatch: bool = False, record_module_stack: bool = False,
    _allow_fake_constant: bool = False, _error_on_data_dependent_ops: bool = True,
) -> Callable[..., GraphModule]:  # fmt: skip
    """Return a function that, called like `f`, returns the GraphModule of aten operators that `f` runs.

    `decomposition_table` has functions by operator, which are traced in the operator's place. Inputs are named after the
    parameters of `f`. `tracing_mode` is "real" or "fake" (here both trace on fake tensors), or "symbolic", which leaves sizes
    symbolic. NotImplementedError for `pre_dispatch`; the other options have no effect.
    """
    if pre_dispatch:
        raise NotImplementedError("make_fx(pre_dispatch=True): operators are recorded below autograd only")
    return proxy_tensor.make_fx(f, tracing_mode, decomposition_table, lambda args, kwargs: _names(f, args, kwargs))


def get_proxy_mode() -> proxy_tensor.ProxyMode | None:
    """Return the mode that records this thread's operators for `make_fx`; None if there is none."""
    return next((mode for mode in reversed(state.modes) if isinstance(mode, proxy_tensor.ProxyMode)), None)


def _names(function: Callable, args: tuple, kwargs: dict[str, Any]) -> list[str]:
    """Name the inputs after the parameters: `x_1` for a tensor `x`, `xs_1` and `xs_2` for two tensors in a list `xs`."""
    positional = _parameters(function.forward if isinstance(function, Module) else function)
    given = [(positional[index] if index < len(positional) else "arg", value) for index, value in enumerate(args)]
    counts: dict[str, int] = {}
    names = []
    for name, value in (*given, *kwargs.items()):
        for _ in tree_flatten(value)[0]:
            counts[name] = counts.get(name, 0) + 1
            names.append(f"{name}_{counts[name]}")
    return names


def _parameters(function: Callable) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # builtins have no signature
        return []
    return [each.name for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
