"""`torch._dynamo.export`: the graph of a function or module, without the Python around it."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from rushlight.core.pytree import tree_map
from rushlight.core.tensor import Tensor
from rushlight.export import Dim
from rushlight.export import export as export_program
from rushlight.fx.graph_module import GraphModule
from rushlight.nn.modules.module import Module

__all__ = ["ExportResult", "export"]


class ExportResult(NamedTuple):
    """The graph, as a module that is called like the original, and the guards, of which an exported graph has none."""

    graph_module: GraphModule
    guards: frozenset


def export(
    f: Callable, *extra_args: Any, aten_graph: bool = False, pre_dispatch: bool = False, decomposition_table: Any = None,
    tracing_mode: str = "symbolic", dynamic_shapes: Any = None, assume_static_by_default: bool = False,
    same_signature: bool = True, **extra_kwargs: Any,
) -> Any:  # fmt: skip
    """Return a function that takes example arguments and returns the `ExportResult` of `f`: see `torch.export.export`.

    Args:
        extra_args, extra_kwargs: example arguments given here are those of the call, whose result is returned at once.
        aten_graph: the graph is one of aten operators either way; composite ones are kept apart unless `decomposition_table`
            has functions to put in the place of operators.
        pre_dispatch: the operators as autograd sees them, which is what is recorded.
        dynamic_shapes: which sizes stay open, as in `torch.export.export`; without it all do that can, or, with
            `assume_static_by_default`, none.
        tracing_mode: "symbolic", "real" or "fake": values are never needed, so that all give one graph.

    UserError or ValueError where a part of the program cannot be recorded.
    """
    if tracing_mode not in ("symbolic", "real", "fake"):
        raise ValueError(f"tracing_mode must be 'symbolic', 'real' or 'fake', got {tracing_mode!r}")
    if (decomposition_table is not None or pre_dispatch) and not aten_graph:
        raise AssertionError("decomposition_table and pre_dispatch need aten_graph=True")
    if not same_signature:
        warnings.warn("_dynamo.export: the signature is the same", stacklevel=2)

    def record(*args: Any, **kwargs: Any) -> ExportResult:
        module = f if isinstance(f, Module) else _module_of(f)
        opened = dynamic_shapes
        if opened is None and not assume_static_by_default:
            bound = inspect.signature(module.forward).bind(*args, **kwargs).arguments
            opened = {name: tree_map(_all_open, value) for name, value in bound.items()}
        program = export_program(module, args, kwargs, dynamic_shapes=opened, strict=True)
        if decomposition_table is not None:
            program = program.run_decompositions(decomposition_table)
        return ExportResult(program.module(), frozenset())

    if extra_args or extra_kwargs:
        return record(*extra_args, **extra_kwargs)
    return record


def _all_open(value: Any) -> dict[int, Any] | None:
    return {dim: Dim.AUTO for dim in range(value.dim())} if isinstance(value, Tensor) else None


def _module_of(function: Callable) -> Module:
    """Return a module whose forward is a function, and has its signature."""

    def forward(self: Module, *args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    signature = inspect.signature(function)
    owner = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    forward.__signature__ = signature.replace(parameters=[owner, *signature.parameters.values()])
    return type(getattr(function, "__name__", "Function"), (Module,), {"forward": forward})()
