"""`ExportedProgram`: a stateless graph, its signature, and the state."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rushlight.core.algebra import Expr
from rushlight.core.pytree import TreeSpec
from rushlight.core.symbolic.relations import Relation
from rushlight.core.tensor import Tensor
from rushlight.export.functional import to_functional
from rushlight.export.graph_signature import ExportGraphSignature
from rushlight.export.ranges import ValueRanges
from rushlight.export.unlifted import ExportedModule, unlift
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.nn.parameter import Parameter
from rushlight.ops.dispatcher import OpOverload


@dataclass
class CallSpec:
    """The trees of a program's arguments, `(args, kwargs)`, and of its result."""

    in_spec: TreeSpec
    out_spec: TreeSpec


@dataclass
class ModuleCallSignature:
    """The inputs and outputs of a module's call, and their trees."""

    inputs: list
    outputs: list
    in_spec: TreeSpec
    out_spec: TreeSpec
    forward_arg_names: list[str] | None = None


@dataclass
class ModuleCallEntry:
    """A module that a program calls, by its qualified name: the program's own is ""."""

    fqn: str
    signature: ModuleCallSignature | None = None


@dataclass
class ExportedProgram:
    """A program without Python: `graph_module` takes flattened state and inputs, `module()` is called like the original.

    `state_dict` has parameters and persistent buffers, `constants` other tensors that the graph reads, `range_constraints` the
    range of each open size. `dialect` is "TRAINING" where the graph may write to its inputs, "ATEN" after `run_decompositions`.
    """

    graph_module: GraphModule
    graph_signature: ExportGraphSignature
    state_dict: dict[str, Any]
    constants: dict[str, Tensor]
    range_constraints: dict[Expr, ValueRanges]
    call_spec: CallSpec
    example_inputs: tuple[tuple, dict] | None = None
    dialect: str = "TRAINING"
    _relations: list[Relation] = field(default_factory=list)
    _size_names: dict[str, str] = field(default_factory=dict)  # the user's name of each symbol, from its Dim

    @property
    def graph(self) -> Graph:
        """The graph of `graph_module`."""
        return self.graph_module.graph

    @property
    def tensor_constants(self) -> dict[str, Tensor]:
        """`constants`."""
        return self.constants

    @property
    def module_call_graph(self) -> list[ModuleCallEntry]:
        """The program's own call; those of submodules are not recorded."""
        signature = self.graph_signature
        inputs, outputs = list(signature.user_inputs), list(signature.user_outputs)
        return [ModuleCallEntry("", ModuleCallSignature(inputs, outputs, self.call_spec.in_spec, self.call_spec.out_spec))]

    def parameters(self) -> Iterator[Parameter]:
        """Yield the parameters, in the graph's order."""
        for _, parameter in self.named_parameters():
            yield parameter

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """Yield qualified names and parameters."""
        for name in self.graph_signature.parameters:
            yield name, self.state_dict[name]

    def buffers(self) -> Iterator[Tensor]:
        """Yield the buffers, in the graph's order."""
        for _, buffer in self.named_buffers():
            yield buffer

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """Yield qualified names and buffers, those included that the state dict leaves out."""
        hidden = self.graph_signature.non_persistent_buffers
        for name in self.graph_signature.buffers:
            yield name, (self.constants if name in hidden else self.state_dict)[name]

    def module(self, check_guards: bool = True) -> ExportedModule:
        """Return a module that is called like the original. Unless `check_guards` is False, it checks its inputs: ValueError
        for another structure, AssertionError that names the input for another size, dtype or constant."""
        return unlift(self, check_guards)

    def run_decompositions(self, decomp_table: Mapping[OpOverload, Callable] | None = None) -> ExportedProgram:
        """Return the program with composites decomposed and without writes: new contents of buffers and inputs are outputs.

        `decomp_table` maps operators to replacement functions. UserError where a write cannot be removed.
        """
        module, signature = to_functional(self.graph_module, self.graph_signature, decomp_table or {})
        made = copy.copy(self)
        made.graph_module, made.graph_signature, made.dialect = module, signature, "ATEN"
        return made

    def validate(self) -> None:
        """Raise RuntimeError if the graph is not well formed."""
        self.graph.lint()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Unable to call ExportedProgram directly. You should use `exported_program.module()` instead."
        )

    def print_readable(self, print_output: bool = True) -> str:
        """Return the graph with types and the user's lines, as text; printed unless `print_output` is False."""
        return self.graph_module.print_readable(print_output)

    def __str__(self) -> str:
        code = self.graph_module.print_readable(print_output=False).replace("\n", "\n    ")
        signature = str(self.graph_signature).replace("\n", "\n    ")
        return (
            f"ExportedProgram:\n    {code}\nGraph signature: {signature}\nRange constraints: {self.range_constraints}\n"
        )

    __repr__ = __str__


def default_decompositions() -> dict[OpOverload, Callable]:
    """Return an empty table: `run_decompositions` always decomposes composites."""
    return {}
