"""Styles that leave a module's parameters alone, and change how its inputs and outputs lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.distributed.device_mesh import DeviceMesh
from rushlight.distributed.tensor.dtensor import DTensor
from rushlight.distributed.tensor.parallel.layers import ParallelStyle, as_distributed, as_output
from rushlight.distributed.tensor.placement_types import Placement
from rushlight.nn.modules.module import Module

__all__ = ["PrepareModuleInput", "PrepareModuleInputOutput", "PrepareModuleOutput"]

Layouts = Placement | Sequence[Placement | None] | None


def _listed(layouts: Layouts) -> list[Placement | None]:
    return [layouts] if isinstance(layouts, Placement) else list(layouts or ())


class PrepareModuleInput(ParallelStyle):
    """Make a module's inputs distributed, with other placements than they have.

    `input_layouts` has the placement of each positional input, None for those to leave alone; `desired_input_layouts` the
    wanted ones. `input_kwarg_layouts` and `desired_input_kwarg_layouts` do so by name. With `use_local_output` the module gets
    each rank's part, as plain tensors. AssertionError where the two lists do not match.
    """

    def __init__(
        self, *, input_layouts: Layouts = None, desired_input_layouts: Layouts = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_output: bool = False,
    ) -> None:  # fmt: skip
        self.input_layouts, self.desired_input_layouts = _listed(input_layouts), _listed(desired_input_layouts)
        self.input_kwarg_layouts = dict(input_kwarg_layouts or {})
        self.desired_input_kwarg_layouts = dict(desired_input_kwarg_layouts or {})
        self.use_local_output = use_local_output
        if len(self.input_layouts) != len(self.desired_input_layouts):
            raise AssertionError("input_layouts and desired_input_layouts should have same length!")
        if self.input_kwarg_layouts.keys() != self.desired_input_kwarg_layouts.keys():
            raise AssertionError("input_kwarg_layouts and desired_input_kwarg_layouts should have the same names!")

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        def prepare(module: Module, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
            if self.input_layouts and len(args) != len(self.input_layouts):
                raise ValueError("module inputs and input_layouts should have same length!")
            if self.input_layouts:
                args = tuple(map(changed, args, self.input_layouts, self.desired_input_layouts))
            for name, layout in self.input_kwarg_layouts.items():
                if name in kwargs:
                    kwargs = {**kwargs, name: changed(kwargs[name], layout, self.desired_input_kwarg_layouts[name])}
            return args, kwargs

        def changed(value: Any, layout: Placement | None, desired: Placement | None) -> Any:
            if layout is None or value is None:
                return value
            made = as_distributed(value, device_mesh, layout, desired or layout)
            return made.to_local() if self.use_local_output else made

        module.register_forward_pre_hook(prepare, with_kwargs=True)
        return module


class PrepareModuleOutput(ParallelStyle):
    """Give a module's outputs other placements than they have.

    `output_layouts` has the placement of each output that is not distributed yet, None for those to leave alone, and
    `desired_output_layouts` the wanted ones. With `use_local_output` they are each rank's part, plain tensors.
    """

    def __init__(self, *, output_layouts: Layouts, desired_output_layouts: Layouts, use_local_output: bool = True) -> None:
        self.output_layouts, self.desired_output_layouts = _listed(output_layouts), _listed(desired_output_layouts)
        self.use_local_output = use_local_output
        if len(self.output_layouts) != len(self.desired_output_layouts):
            raise AssertionError("output_layouts and desired_output_layouts should have same length!")

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        def prepare(module: Module, inputs: tuple, outputs: Any) -> Any:
            several = isinstance(outputs, tuple | list)
            given = list(outputs) if several else [outputs]
            if len(given) != len(self.output_layouts):
                raise ValueError("module outputs and output_layouts should have same length!")
            made = list(map(changed, given, self.output_layouts, self.desired_output_layouts))
            return tuple(made) if several else made[0]

        def changed(value: Any, layout: Placement | None, desired: Placement | None) -> Any:
            if layout is None:
                return value
            if not isinstance(value, DTensor):
                value = DTensor.from_local(value, device_mesh, (layout,))
            return as_output(value, desired or layout, self.use_local_output)

        module.register_forward_hook(prepare)
        return module


class PrepareModuleInputOutput(ParallelStyle):
    """What PrepareModuleInput and PrepareModuleOutput do together."""

    def __init__(
        self, *, input_layouts: Layouts = None, desired_input_layouts: Layouts = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_input: bool = False, output_layouts: Layouts = None, desired_output_layouts: Layouts = None,
        use_local_output: bool = True,
    ) -> None:  # fmt: skip
        self.prepare_module_input = PrepareModuleInput(
            input_layouts=input_layouts, desired_input_layouts=desired_input_layouts, input_kwarg_layouts=input_kwarg_layouts,
            desired_input_kwarg_layouts=desired_input_kwarg_layouts, use_local_output=use_local_input,
        )  # fmt: skip
        self.prepare_module_output = PrepareModuleOutput(
            output_layouts=output_layouts, desired_output_layouts=desired_output_layouts, use_local_output=use_local_output
        )

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        self.prepare_module_input._apply(module, device_mesh)
        return self.prepare_module_output._apply(module, device_mesh)
