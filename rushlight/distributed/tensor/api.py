"""Ways to make distributed tensors and modules of them."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from rushlight.autograd.grad_mode import no_grad
from rushlight.core.tensor import Tensor
from rushlight.distributed.collectives import broadcast
from rushlight.distributed.device_mesh import DeviceMesh
from rushlight.distributed.tensor.dispatch import spec_of
from rushlight.distributed.tensor.dtensor import DTensor
from rushlight.distributed.tensor.layout import Placements, local_part, normalized, required_mesh
from rushlight.distributed.tensor.placement_types import Partial, Placement, Replicate
from rushlight.distributed.tensor.redistribution import moved
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter

__all__ = ["distribute_module", "distribute_tensor", "replace_parameter"]


def distribute_tensor(
    tensor: Tensor, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, *,
    src_data_rank: int | None = 0,
) -> DTensor:  # fmt: skip
    """Return a leaf with the values of `tensor` on the first rank, spread as `placements` says; None: replicated.

    With `src_data_rank=None` each rank takes its part of its own tensor, without communication. RuntimeError for tensors that
    are results of an operation; ValueError for Partial.
    """
    device_mesh = required_mesh(device_mesh, "distribute_tensor")
    if not tensor.is_leaf:
        raise RuntimeError("`distribute_tensor` should be used to distribute leaf tensors! but found non-leaf tensor!")
    placed = normalized(placements, device_mesh, tensor.dim())
    if any(isinstance(each, Partial) for each in placed):
        raise ValueError("distribute_tensor cannot make Partial tensors: use DTensor.from_local")
    if isinstance(tensor, DTensor):
        if tensor.device_mesh != device_mesh:
            raise ValueError(f"Cannot distribute a DTensor with device mesh {tensor.device_mesh} to a different device mesh.")
        if tensor.placements != placed:
            raise ValueError(
                f"Cannot distribute a DTensor with placements {tensor.placements} to a different placements {placed}: use "
                "redistribute"
            )
        return tensor
    with no_grad():
        values = tensor.detach().contiguous()
        if values.is_meta or device_mesh.get_coordinate() is None:
            return _without_values(values, device_mesh, placed, tensor.requires_grad)
        values = values.to(device_mesh.device_type)
        if src_data_rank is not None:
            values = values.clone()
            for mesh_dim in range(device_mesh.ndim):
                broadcast(values, group=device_mesh.get_group(mesh_dim), group_src=src_data_rank)
        spec = spec_of(values, device_mesh, (Replicate(),) * device_mesh.ndim)
        local = moved(values, spec, placed)
    return DTensor(local, spec.placed(placed), tensor.requires_grad)


def _without_values(whole: Tensor, mesh: DeviceMesh, placed: Placements, requires_grad: bool) -> DTensor:
    """Return a distributed tensor on the meta device, or where this rank is not in the mesh."""
    spec = spec_of(whole, mesh, placed)
    return DTensor(whole.new_empty(local_part(whole.shape, mesh, placed)[0]), spec, requires_grad)


def distribute_module(
    module: Module,
    device_mesh: DeviceMesh | None = None,
    partition_fn: Callable[[str, Module, DeviceMesh], None] | None = None,
    input_fn: Callable[[Module, Any, DeviceMesh], Any] | None = None,
    output_fn: Callable[[Module, Any, DeviceMesh], Any] | None = None,
) -> Module:
    """Make a module's parameters distributed, and return it.

    `partition_fn(name, submodule, mesh)` is called for each submodule; what it leaves is replicated. `input_fn(module, inputs,
    mesh)` and `output_fn(module, outputs, mesh)` change what goes in and comes out. ValueError without a mesh.
    """
    device_mesh = required_mesh(device_mesh, "distribute_module")
    for name, submodule in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, submodule, device_mesh)
        _replicate(submodule, device_mesh)
    if input_fn is not None:
        change = _with_module(input_fn, "input_fn")
        module.register_forward_pre_hook(lambda module, inputs: change(module, inputs, device_mesh))
    if output_fn is not None:
        give = _with_module(output_fn, "output_fn")
        module.register_forward_hook(lambda module, inputs, outputs: give(module, outputs, device_mesh))
    return module


def _with_module(function: Callable, name: str) -> Callable[[Module, Any, DeviceMesh], Any]:
    """Return a function of the module, a value and the mesh; older programs have those of the last two alone."""
    count = len(inspect.signature(function).parameters)
    if count == 2:
        warnings.warn(
            f"Deprecating {name} that takes two arguments (inputs, device_mesh), please use {name} that takes in (module, "
            "inputs, device_mesh) instead!", FutureWarning, stacklevel=3,
        )  # fmt: skip
        return lambda module, value, mesh: function(value, mesh)
    if count != 3:
        raise ValueError(f"{name} should take in 3 arguments, but got {count} arguments!")
    return function


def _replicate(module: Module, mesh: DeviceMesh) -> None:
    for name, parameter in list(module._parameters.items()):
        if parameter is not None and not isinstance(parameter, DTensor):
            replace_parameter(module, name, distribute_tensor(parameter.detach(), mesh), parameter.requires_grad)
    for name, buffer in list(module._buffers.items()):
        if buffer is not None and not isinstance(buffer, DTensor):
            module._buffers[name] = distribute_tensor(buffer.detach(), mesh)


def replace_parameter(module: Module, name: str, value: Tensor, requires_grad: bool) -> None:
    """Make a tensor the parameter of a module by that name. The gradient of a distributed one will lie as it does."""
    made = module._parameters[name] = Parameter(value, requires_grad)
    if requires_grad and isinstance(made, DTensor):
        made.register_hook(lambda grad: grad.redistribute(placements=made.placements))
