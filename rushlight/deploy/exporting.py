"""`export`: write a model as a folder of C and C++ that runs without Python."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rushlight.autograd.grad_mode import no_grad
from rushlight.core.pytree import tree_flatten
from rushlight.core.tensor import Tensor
from rushlight.deploy.exported import add_exported
from rushlight.deploy.model import Model
from rushlight.deploy.package import write_package
from rushlight.deploy.scripted import Example, add_scripted, add_scripted_function
from rushlight.deploy.spelling import is_model_name, model_name
from rushlight.export.dynamic_shapes import Dim
from rushlight.export.exported_program import ExportedProgram
from rushlight.export.exporting import export as export_program
from rushlight.jit.module import ScriptModule
from rushlight.jit.script_function import ScriptFunction
from rushlight.nn.modules.module import Module


class _Function(Module):
    """A function wrapped as a module for export."""

    def __init__(self, function: Any):
        super().__init__()
        self.forward = function


def export(
    model: Any, example_inputs: tuple | Mapping[str, tuple] = (), output: str | os.PathLike = "exported", *,
    name: str | None = None, kwargs: Mapping[str, Any] | None = None, dynamic_shapes: Any = None, embed: bool = False,
    force: bool = False,
) -> Path:  # fmt: skip
    """Write a model as a folder of C and C++ that any C++17 compiler builds, and that needs no Python and no library.

    Args:
        model: an `ExportedProgram`, a module or function in Python, a scripted or traced module, or a dict of exported
            programs by the names of methods.
        example_inputs: a tuple of arguments for the call that is exported. For a scripted module, a dict of such tuples by the
            names of methods exports several, which share weights and state. Not for an `ExportedProgram`.
        output: the folder to write, which is made. FileExistsError where it holds files that no export wrote, unless `force`.
        name: what the C interface's names begin with: an identifier; by default the name of the module's class.
        kwargs: keyword arguments of the example call.
        dynamic_shapes: which sizes are left open, as for `torch.export.export`.
        embed: compile the weights into the library.

    Returns:
        The folder's path.

    NotExportable lists the operators that have no native form, with their lines; nothing is written then. ValueError for a
    name that is no identifier. TypeError for examples of another form.

    Example:
        >>> import rushlight as torch, tempfile
        >>> from rushlight.deploy import export
        >>> folder = export(torch.nn.Linear(3, 2), (torch.ones(1, 3),), tempfile.mkdtemp(), name="small")
        >>> sorted(path.name for path in folder.iterdir())[:3]
        ['.rushlight-export', 'CMakeLists.txt', 'README.md']
    """
    called = _name_of(model) if name is None else name
    if not is_model_name(called):
        raise ValueError(f"the model's name must be an identifier of C that is no function of its library, got {called!r}")
    _check_arguments(model, example_inputs, kwargs, dynamic_shapes)
    made = Model(called)
    with no_grad():
        _add(made, model, example_inputs, kwargs, dynamic_shapes)
    folder = Path(output)
    write_package(made, folder, embed, force)
    return folder


def _name_of(model: Any) -> str:
    if isinstance(model, ExportedProgram | Mapping):
        return "model"
    return model_name(getattr(model, "original_name", None) or getattr(model, "__name__", type(model).__name__).lower())


def _check_arguments(model: Any, example_inputs: Any, kwargs: Any, dynamic_shapes: Any) -> None:
    """Raise TypeError or ValueError for examples that do not go with the kind of model."""
    if isinstance(model, ExportedProgram | Mapping):
        programs = model.values() if isinstance(model, Mapping) else [model]
        others = [each for each in programs if not isinstance(each, ExportedProgram)]
        if others:
            raise TypeError(f"a dict of methods holds exported programs (torch.export.export), got {type(others[0]).__name__}")
        if not programs:
            raise ValueError("the dict of methods is empty: a model has at least one")
        if example_inputs or kwargs or dynamic_shapes:
            raise ValueError("an exported program has its inputs and sizes already: example_inputs, kwargs and dynamic_shapes "
                             "have no meaning for one")  # fmt: skip
        return
    if isinstance(model, ScriptModule | ScriptFunction):
        calls = example_inputs.values() if isinstance(example_inputs, Mapping) else [example_inputs]
        if not calls:
            raise ValueError("example_inputs names no method: a model has at least one")
        lists = [each if isinstance(each, list) else [each] for each in calls]
        wrong = [each for each in lists if not each or not all(isinstance(call, tuple) for call in each)]
        if wrong:
            raise TypeError("the example of a call is a tuple of its arguments, or a list of such tuples, got "
                            f"{type(wrong[0][0]).__name__ if wrong[0] else 'an empty list'}")  # fmt: skip
    elif not isinstance(example_inputs, tuple | list):
        raise TypeError(f"example_inputs is a tuple of the call's arguments, got {type(example_inputs).__name__}")


def _add(made: Model, model: Any, example_inputs: Any, kwargs: Any, dynamic_shapes: Any) -> None:
    if isinstance(model, ExportedProgram):
        model = {"forward": model}
    if isinstance(model, ScriptModule | ScriptFunction):
        if kwargs:
            raise ValueError("examples of a scripted module's calls are positional: kwargs has no meaning for one")
        examples = _examples(example_inputs, dynamic_shapes)
        if isinstance(model, ScriptModule):
            add_scripted(made, model, examples)
        else:
            add_scripted_function(made, model._function, examples)
        return
    if isinstance(model, Mapping):
        for name, program in model.items():
            add_exported(made, name, program)
        return
    module = model if isinstance(model, Module) else _Function(model)
    program = export_program(module, tuple(example_inputs), dict(kwargs or {}), dynamic_shapes=dynamic_shapes)
    add_exported(made, "forward", program)


def _examples(example_inputs: Any, dynamic_shapes: Any) -> list[Example]:
    """Return the example calls of a scripted module, by method; a list of tuples stands for several calls of one method."""
    by_method = example_inputs if isinstance(example_inputs, Mapping) else {"forward": example_inputs}
    found = []
    for method, calls in by_method.items():
        by_name = isinstance(example_inputs, Mapping) and isinstance(dynamic_shapes, Mapping)
        shapes = dynamic_shapes.get(method) if by_name else dynamic_shapes
        for arguments in calls if isinstance(calls, list) else [calls]:
            found.append(Example(method, tuple(arguments), _open_dims(arguments, shapes), _bounds(shapes)))
    return found


def _open_dims(arguments: Sequence[Any], shapes: Any) -> dict[int, dict[int, str]]:
    """Return the open dimensions of each tensor, in order of tensors, with their names."""
    if shapes is None:
        return {}
    if isinstance(shapes, Mapping):
        raise ValueError("dynamic_shapes of a scripted module go by the order of arguments: give a tuple, one entry for each")
    found: dict[int, dict[int, str]] = {}
    position = 0
    for argument, shape in zip(arguments, shapes, strict=False):
        tensors = [leaf for leaf in tree_flatten(argument)[0] if isinstance(leaf, Tensor)]
        if isinstance(argument, Tensor) and shape is not None:
            entries = shape.items() if isinstance(shape, Mapping) else enumerate(shape)
            dims = {
                dim: getattr(entry, "__name__", None) or f"size_{position}_{dim}" for dim, entry in entries if _is_open(entry)
            }
            if dims:
                found[position] = dims
        position += len(tensors)
    return found


def _bounds(shapes: Any) -> dict[str, tuple[int, int | None]]:
    """Return the lower and upper bound of each named size."""
    dims = [entry for shape in shapes or () if isinstance(shape, Mapping) for entry in shape.values() if isinstance(entry, Dim)]
    return {dim.__name__: (dim.min, dim.max if isinstance(dim.max, int) else None) for dim in dims}


def _is_open(entry: Any) -> bool:
    return entry is not None and not isinstance(entry, int) and entry is not Dim.STATIC
