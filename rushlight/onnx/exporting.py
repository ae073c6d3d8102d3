"""`torch.onnx.export`: a model and example arguments become an ONNX model."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.export import Dim, ExportedProgram
from rushlight.export import export as export_program
from rushlight.export.dynamic_shapes import named_arguments
from rushlight.nn.modules.module import Module
from rushlight.onnx.convert import opset_versions, to_model
from rushlight.onnx.errors import OnnxExporterError
from rushlight.onnx.modes import TrainingMode
from rushlight.onnx.packages import need
from rushlight.onnx.program import ONNXProgram

DEFAULT_OPSET = 18
_WITHOUT_EFFECT = {
    "verbose": None, "dynamo": True, "report": False, "optimize": True, "verify": False, "profile": False,
    "dump_exported_program": False, "artifacts_dir": ".", "operator_export_type": None, "do_constant_folding": True,
    "custom_opsets": None, "export_modules_as_functions": False, "autograd_inlining": True, "fallback": False,
}  # fmt: skip
"""PyTorch's arguments that change nothing here, with their defaults."""


def export(
    model: Module | ExportedProgram, args: tuple | Tensor = (), f: str | os.PathLike | BinaryIO | None = None, *,
    kwargs: dict[str, Any] | None = None, verbose: bool | None = None, input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None, opset_version: int | None = None, dynamo: bool = True,
    external_data: bool | None = None, dynamic_shapes: Any = None, dynamic_axes: Mapping[str, Any] | None = None,
    training: TrainingMode = TrainingMode.EVAL, export_params: bool = True, keep_initializers_as_inputs: bool = False,
    custom_translation_table: Any = None, **without_effect: Any,
) -> ONNXProgram:  # fmt: skip
    """Export a model to ONNX, and write it to `f` if that is given. Needs the package `onnx`.

    The model is recorded by `torch.export.export` with the example arguments. Sizes are fixed but where `dynamic_shapes` (a
    tree as `torch.export.export` takes, in which a string names a size), or `dynamic_axes` (by the names of inputs:
    `{"x": {0: "batch"}}` or `{"x": [0]}`), opens them. The model is in evaluation mode while it is recorded, unless `training`
    says otherwise. PyTorch's other arguments have no effect, of which a warning tells where one is not at its default.

    OnnxExporterError: operators without a translation, all of them named, or a version of the operators that is not there.
    """
    _check_ignored_arguments({"verbose": verbose, "dynamo": dynamo, **without_effect})
    onnx = need("onnx")
    opset = DEFAULT_OPSET if opset_version is None else opset_version
    first, last = opset_versions()
    if not first <= opset <= last:
        raise OnnxExporterError(f"opset_version {opset} is not supported; choose one from {first} to {last}")
    if custom_translation_table:
        raise OnnxExporterError("custom_translation_table takes functions of onnxscript, which is not supported")
    program = _export_program(model, args, kwargs, dynamic_shapes, dynamic_axes, input_names or (), training)
    model_proto = to_model(onnx, program, opset, input_names or (), output_names or ())
    made = ONNXProgram(model_proto, program)
    if f is not None:
        made.save(
            f, include_initializers=export_params, keep_initializers_as_inputs=keep_initializers_as_inputs,
            external_data=external_data,
        )  # fmt: skip
    return made


def _check_ignored_arguments(given: dict[str, Any]) -> None:
    """Warn about arguments without effect; TypeError for arguments that PyTorch does not have either."""
    for name in given:
        if name not in _WITHOUT_EFFECT:
            raise TypeError(f"export() got an unexpected keyword argument {name!r}")
    ignored = [name for name, value in given.items() if value is not None and value != _WITHOUT_EFFECT[name]]
    if ignored:
        warnings.warn(f"torch.onnx.export: these arguments have no effect: {', '.join(ignored)}", stacklevel=3)


def _export_program(
    model: Any, args: Any, kwargs: dict | None, shapes: Any, axes: Mapping | None, names: Sequence[str], training: TrainingMode
) -> ExportedProgram:
    if isinstance(model, ExportedProgram):
        return model.run_decompositions()
    args = (args,) if isinstance(args, Tensor) else tuple(args)
    kwargs = dict(kwargs or {})
    if args and isinstance(args[-1], dict) and _has_keyword_dict(model, args):
        args, kwargs = args[:-1], {**args[-1], **kwargs}  # as programs passed keyword arguments before there was `kwargs`
    if shapes is None and axes:
        shapes = _shapes_from_axes(model, args, kwargs, axes, names)
    with _set_training_mode(model, training), _mark_as_export():
        return export_program(model, args, kwargs, dynamic_shapes=_replace_names_by_dims(shapes, {})).run_decompositions()


def _has_keyword_dict(model: Module, args: tuple) -> bool:
    """Return whether the last argument, a dict, holds keyword arguments."""
    try:
        named_arguments(model.forward, args[:-1], args[-1])
    except TypeError:
        return False
    return all(isinstance(key, str) for key in args[-1])


def _shapes_from_axes(model: Module, args: tuple, kwargs: dict, axes: Mapping, names: Sequence[str]) -> dict[str, Any]:
    """Return `dynamic_shapes` for `dynamic_axes`, by the names of inputs. The shapes of outputs follow from them."""
    own = named_arguments(model.forward, args, kwargs)
    shapes: dict[str, Any] = {}
    for place, name in enumerate(own):
        found = axes.get(names[place] if place < len(names) else name)
        if isinstance(found, Sequence):
            found = {dim: f"{name}_dim_{dim}" for dim in found}
        shapes[name] = found
    return shapes


def _replace_names_by_dims(shapes: Any, made: dict[str, Dim]) -> Any:
    """Return the tree with each string replaced by a Dim."""
    if isinstance(shapes, str):
        return made.setdefault(shapes, Dim(shapes))
    if isinstance(shapes, list | tuple):
        return type(shapes)([_replace_names_by_dims(each, made) for each in shapes])
    return {key: _replace_names_by_dims(each, made) for key, each in shapes.items()} if isinstance(shapes, dict) else shapes


@contextmanager
def _set_training_mode(model: Module, training: TrainingMode) -> Iterator[None]:
    """Put a model's modules into a training mode, and restore the mode of each afterwards."""
    before = [(module, module.training) for module in model.modules()]
    if training is not TrainingMode.PRESERVE:
        model.train(training is TrainingMode.TRAINING)
    try:
        yield
    finally:
        for module, mode in before:
            module.training = mode


@contextmanager
def _mark_as_export() -> Iterator[None]:
    before, state.onnx_export = state.onnx_export, True
    try:
        yield
    finally:
        state.onnx_export = before


def is_in_onnx_export() -> bool:
    """Return whether this thread records a model for `export`."""
    return state.onnx_export
