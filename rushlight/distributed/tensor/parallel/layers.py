"""Styles: how one module's parameters lie on the ranks, and what its inputs and outputs are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.distributed.device_mesh import DeviceMesh
from rushlight.distributed.tensor.api import distribute_module, distribute_tensor, replace_parameter
from rushlight.distributed.tensor.dtensor import DTensor
from rushlight.distributed.tensor.placement_types import Placement, Replicate, Shard
from rushlight.nn.modules.linear import Linear
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.sparse import Embedding

__all__ = ["ColwiseParallel", "ParallelStyle", "RowwiseParallel", "SequenceParallel"]


class ParallelStyle(ABC):
    """A way to spread a module over the ranks of a mesh; `_apply` does it."""

    src_data_rank: int | None = 0

    @abstractmethod
    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        """Spread a module's parameters, and register what happens to its inputs and outputs."""


def as_distributed(value: Any, mesh: DeviceMesh, layout: Placement, desired: Placement) -> Any:
    """Return a rank's tensor as a distributed one with the placement `desired`; `layout` says how it lies."""
    if not isinstance(value, DTensor):
        value = DTensor.from_local(value, mesh, (layout,), run_check=False)
    return value.redistribute(placements=(desired,))


def as_output(value: DTensor, layout: Placement, local: bool) -> Tensor:
    """Return a result with a placement, as this rank's part if `local` is set."""
    value = value.redistribute(placements=(layout,))
    return value.to_local() if local else value


class _OfWeights(ParallelStyle):
    """The base of styles of Linear and Embedding: how weight and bias lie, by the module's class."""

    weights: dict[type, dict[str, Placement]]

    def __init__(
        self, *, input_layouts: Placement, output_layouts: Placement, use_local_output: bool = True
    ) -> None:
        self.input_layouts, self.output_layouts = input_layouts, output_layouts
        self.use_local_output = use_local_output

    def _desired_input(self, module: Module) -> Placement:
        raise NotImplementedError

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        kind = next((each for each in self.weights if isinstance(module, each)), None)
        if kind is None:
            raise NotImplementedError(f"{type(self).__name__} currently only support nn.Linear and nn.Embedding!")
        places, desired = self.weights[kind], self._desired_input(module)

        def spread(name: str, submodule: Module, mesh: DeviceMesh) -> None:
            for key, parameter in list(submodule._parameters.items()):
                if parameter is not None:
                    spread_out = distribute_tensor(
                        parameter.detach(), mesh, [places[key]], src_data_rank=self.src_data_rank
                    )  # fmt: skip
                    replace_parameter(submodule, key, spread_out, parameter.requires_grad)

        return distribute_module(
            module, device_mesh, spread,
            lambda module, inputs, mesh: (as_distributed(inputs[0], mesh, self.input_layouts, desired), *inputs[1:]),
            lambda module, output, mesh: as_output(output, self.output_layouts, self.use_local_output),
        )  # fmt: skip

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(input_layouts={self.input_layouts}, output_layouts={self.output_layouts}, "
            f"use_local_output={self.use_local_output})"
        )


class ColwiseParallel(_OfWeights):
    """Each rank has some of the outputs of a Linear, or of an Embedding's columns.

    `input_layouts` says how inputs lie that are not distributed yet (Replicate), `output_layouts` how the output is to lie
    (Shard(-1)); with `use_local_output` it is this rank's part, a plain tensor. NotImplementedError for other modules.
    """

    weights = {Linear: {"weight": Shard(0), "bias": Shard(0)}, Embedding: {"weight": Shard(1)}}

    def __init__(
        self, *, input_layouts: Placement | None = None, output_layouts: Placement | None = None, use_local_output: bool = True
    ) -> None:
        super().__init__(
            input_layouts=input_layouts or Replicate(), output_layouts=output_layouts or Shard(-1),
            use_local_output=use_local_output,
        )  # fmt: skip

    def _desired_input(self, module: Module) -> Placement:
        return Replicate()


class RowwiseParallel(_OfWeights):
    """Each rank works on some of the inputs of a Linear, or has some of an Embedding's rows; the results are summed.

    `input_layouts` says how inputs lie that are not distributed yet (Shard(-1)), `output_layouts` how the output is to lie
    (Replicate); with `use_local_output` it is this rank's part, a plain tensor. NotImplementedError for other modules.
    """

    weights = {Linear: {"weight": Shard(1), "bias": Replicate()}, Embedding: {"weight": Shard(0)}}

    def __init__(
        self, *, input_layouts: Placement | None = None, output_layouts: Placement | None = None, use_local_output: bool = True
    ) -> None:
        super().__init__(
            input_layouts=input_layouts or Shard(-1), output_layouts=output_layouts or Replicate(),
            use_local_output=use_local_output,
        )  # fmt: skip

    def _desired_input(self, module: Module) -> Placement:
        return Shard(-1) if isinstance(module, Linear) else Replicate()


class SequenceParallel(ParallelStyle):
    """Each rank normalizes some of the positions of sequences: for LayerNorm, RMSNorm and Dropout, with whole parameters.

    `sequence_dim` is the dimension of positions; with `use_local_output` the output is this rank's part, a plain tensor.
    """

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        self.sequence_sharding = (Shard(sequence_dim),)
        self.use_local_output = use_local_output

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        cut = self.sequence_sharding[0]
        return distribute_module(
            module, device_mesh, None,
            lambda module, inputs, mesh: (as_distributed(inputs[0], mesh, cut, cut), *inputs[1:]),
            lambda module, output, mesh: output.to_local() if self.use_local_output else output,
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"SequenceParallel(sequence_dim={self.sequence_sharding[0].dim}, use_local_output={self.use_local_output})"
