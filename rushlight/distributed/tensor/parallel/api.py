"""parallelize_module: spread a module over the ranks of a mesh, by a plan."""

from __future__ import annotations

import warnings
from fnmatch import fnmatch

from rushlight.distributed.device_mesh import DeviceMesh
from rushlight.distributed.tensor.layout import required_mesh
from rushlight.distributed.tensor.parallel.layers import ParallelStyle
from rushlight.nn.modules.module import Module

__all__ = ["parallelize_module"]


def parallelize_module(
    module: Module,
    device_mesh: DeviceMesh | None = None,
    parallelize_plan: ParallelStyle | dict[str, ParallelStyle] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> Module:
    """Spread a module by a style, or its submodules by styles under their names, and return it.

    Names may have `*` for any name between dots: "layers.*.attention.query". Parameters are those of `src_data_rank`; with
    None each rank takes its part of its own. ValueError: the mesh is missing or has several dimensions. TypeError for a plan of
    another form.
    """
    device_mesh = required_mesh(device_mesh, "parallelize_module")
    if device_mesh.ndim != 1:
        raise ValueError(f"Currently only accept 1D device mesh, but found {device_mesh.ndim}: take one of its dimensions")
    if parallelize_plan is None:
        warnings.warn("No parallelize_plan is provided and auto-parallel is not supported at the moment", stacklevel=2)
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan.src_data_rank = src_data_rank
        return parallelize_plan._apply(module, device_mesh)
    if not isinstance(parallelize_plan, dict):
        raise TypeError(f"Expect Union[ParallelStyle, Dict[str, ParallelStyle]] for parallelize_plan, got {parallelize_plan!r}")
    for pattern, style in parallelize_plan.items():
        chosen = _matching(module, pattern)
        if not chosen:
            warnings.warn(f"Parallelize plan key {pattern!r} could not be resolved: no submodule matching it", stacklevel=2)
        for submodule in chosen:
            style.src_data_rank = src_data_rank
            style._apply(submodule, device_mesh)
    return module


def _matching(module: Module, pattern: str) -> list[Module]:
    """Return the submodules whose names match a pattern, name by name between the dots."""
    parts = pattern.split(".") if pattern else []
    return [
        submodule
        for name, submodule in list(module.named_modules())
        if len(names := name.split(".") if name else []) == len(parts) and all(map(fnmatch, names, parts))
    ]
