"""functionalize: rewrite a function of tensors without in-place operators, as `torch.func` does.

In: a function, and the arguments of a call. Out: the function's results, computed by operators that write to nothing; what the
function wrote to its arguments is copied to them at the end. An outer capture sees these operators.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from rushlight.aot.functionalize import functionalize as without_writes
from rushlight.core.pytree import tree_flatten, tree_unflatten
from rushlight.core.tensor import Tensor
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.interpreter import Interpreter
from rushlight.fx.proxy_tensor import capture
from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.modes import SuspendModes
from rushlight.ops.packet import namespaces

__all__ = ["functionalize"]
aten = namespaces.namespace("aten")
_KINDS = ("mutations", "mutations_and_views")


def functionalize(func: Callable, *, remove: str = "mutations") -> Callable:
    """Return a function that computes what `func` computes, by operators that write to nothing.

    Each call records `func`, which must not depend on the values of its tensors. Under `make_fx` the graph has these operators.

    Args:
        func (Callable): a function of tensors, or trees of them. Other arguments are fixed in each call.
        remove (str): "mutations", or "mutations_and_views" to replace views by copies, too.

    Raises RuntimeError for another `remove`, and if a write cannot be expressed without one.

    Example:
        >>> def double(x):
        ...     y = x.clone()
        ...     y.view(-1).mul_(2)
        ...     return y
        >>> torch.func.functionalize(double)(torch.ones(2))
        tensor([2., 2.])
    """
    if remove not in _KINDS:
        raise RuntimeError(f"functionalize(f, remove='{remove}'): expected one of {', '.join(map(repr, _KINDS))}")

    @functools.wraps(func)
    def functional(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = tree_flatten((args, kwargs))
        with SuspendModes():  # keeps an outer capture from recording this one's operators
            examples = [_example(leaf) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
            given, named = tree_unflatten(examples, spec)
            captured = capture(func, given, named)
            without_writes(captured.module)
        if "keep_eager" in captured.module.meta:
            raise RuntimeError(f"functionalize: {captured.module.meta['keep_eager']}")
        if remove == "mutations_and_views":
            _copy_views(captured.module)
        tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        return captured.unflatten(Interpreter(captured.module).run(*tensors))

    return functional


def _example(tensor: Tensor) -> Tensor:
    """Make a meta tensor of the same sizes, strides and dtype that belongs to no transform."""
    return aten.empty_strided.default(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")


def _copy_views(module: GraphModule) -> None:
    for node in module.graph.nodes:
        if node.op == "call_function" and isinstance(node.target, OpOverload) and node.target.is_view:
            copies = getattr(aten, f"{node.target._schema.name}_copy", None)
            if copies is not None and node.target.overload in copies.overloads():
                node.target = getattr(copies, node.target.overload)
    module.recompile()
