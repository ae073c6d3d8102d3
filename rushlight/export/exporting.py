"""`export`: capture a module with example arguments as an `ExportedProgram`."""

from __future__ import annotations

import warnings
from typing import Any

from rushlight.core.pytree import tree_flatten
from rushlight.dynamo.frames import FrameCallback
from rushlight.dynamo.regions import optimize
from rushlight.export.dynamic_shapes import AdditionalInputs, ShapesCollection, named_arguments
from rushlight.export.exported_program import CallSpec, ExportedProgram
from rushlight.export.graph_signature import InputKind
from rushlight.export.ranges import OpenInputs
from rushlight.export.tracing import Traced, exporting, trace
from rushlight.nn.modules.module import Module


def export(
    mod: Module, args: tuple, kwargs: dict[str, Any] | None = None, *, dynamic_shapes: Any = None, strict: bool = False,
    preserve_module_call_signature: tuple[str, ...] = (), prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:  # fmt: skip
    """Record a module's operations on example arguments, as a graph that runs without its Python source.

    Sizes are fixed to the example's, except where `dynamic_shapes` opens them: a tree like the arguments, by name or in order,
    with a `Dim`, a hint (`Dim.AUTO`), or None for each size. With `strict`, dynamo must be able to capture the whole call. The
    last two arguments have no effect, and warn.

    ValueError: not a module, or a compiled or scripted one. TypeError: args is no tuple. UserError: the program depends on the
    values of tensors (the error names the line), or needs tighter constraints on open sizes (it suggests fixes).
    """
    kwargs = kwargs or {}
    _check_arguments(mod, args)
    if preserve_module_call_signature or prefer_deferred_runtime_asserts_over_guards:
        warnings.warn("export: preserve_module_call_signature and prefer_deferred_... have no effect here", stacklevel=2)
    if isinstance(dynamic_shapes, ShapesCollection | AdditionalInputs):
        dynamic_shapes = dynamic_shapes.dynamic_shapes(mod, args, kwargs)
    if strict:
        _check_capturable(mod, args, kwargs)
    named = named_arguments(mod.forward, args, kwargs)
    opened = OpenInputs(named, dynamic_shapes)
    traced = trace(mod, args, kwargs, opened, named)
    return _program(mod, args, kwargs, opened, traced)


def _check_arguments(mod: Any, args: Any) -> None:
    if not isinstance(mod, Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if hasattr(mod, "_c") or hasattr(mod, "_orig_mod"):
        raise ValueError("Exporting a ScriptModule or a compiled module is not supported. Export the module it was made from.")
    if not isinstance(args, tuple):
        raise TypeError(f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}")


class _Captured(Exception):
    """Stops the run, because the whole call was captured."""


def _check_capturable(mod: Module, args: tuple, kwargs: dict) -> None:
    """Check that dynamo can capture the whole call, without running it; raise dynamo's error if it cannot."""

    def backend(module: Any, inputs: list) -> Any:
        def run(*_: Any) -> Any:
            raise _Captured

        return run

    callback = FrameCallback(backend, fullgraph=True)
    try:
        with exporting():
            optimize(callback)(mod)(*args, **kwargs)
    except _Captured:
        return
    finally:
        callback.forget()


def _program(mod: Module, args: tuple, kwargs: dict, opened: OpenInputs, traced: Traced) -> ExportedProgram:
    ranges, relations = opened.settle()
    state = mod.state_dict(keep_vars=True)
    wanted = {spec.target for spec in traced.signature.input_specs if spec.kind is not InputKind.USER_INPUT}
    hidden = {name: buffer for name, buffer in mod.named_buffers() if name not in state}
    return ExportedProgram(
        graph_module=traced.module,
        graph_signature=traced.signature,
        state_dict={name: value for name, value in state.items() if name in wanted},
        constants={**hidden, **traced.constants},
        range_constraints=ranges,
        call_spec=CallSpec(tree_flatten((args, kwargs))[1], traced.out_spec),
        example_inputs=(args, kwargs),
        _relations=relations,
        _size_names=opened.names(),
    )
