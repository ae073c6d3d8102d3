"""The signature of an exported graph: the role of each input and output.

An exported graph has no state: parameters, buffers and constant tensors are inputs before the user's, and new contents of
buffers and inputs are outputs before the user's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from types import MappingProxyType
from typing import Any

from rushlight.core.symbolic import SymFloat, SymInt

__all__ = [
    "ConstantArgument", "CustomObjArgument", "ExportBackwardSignature", "ExportGraphSignature", "InputKind", "InputSpec",
    "OutputKind", "OutputSpec", "SymBoolArgument", "SymFloatArgument", "SymIntArgument", "TensorArgument", "TokenArgument",
]  # fmt: skip


@dataclass
class TensorArgument:
    """A tensor: the node `name`."""

    name: str


@dataclass
class TokenArgument:
    """A token that orders side effects: the node `name`. Programs here have none."""

    name: str


@dataclass
class SymIntArgument:
    """A symbolic integer: the node `name`."""

    name: str


@dataclass
class SymFloatArgument:
    """A symbolic float, which follows from open sizes: the node `name`."""

    name: str


@dataclass
class SymBoolArgument:
    """A symbolic truth value: the node `name`. Programs here have none."""

    name: str


@dataclass
class CustomObjArgument:
    """An object of a script class: the node `name`. Programs here have none."""

    name: str
    class_fqn: str
    fake_val: Any = None


@dataclass
class ConstantArgument:
    """A Python value that is fixed in the program."""

    name: str
    value: int | float | bool | str | None


Argument = (
    TensorArgument | SymIntArgument | SymFloatArgument | SymBoolArgument | ConstantArgument | CustomObjArgument | TokenArgument
)


def argument_kind(value: object) -> type[TensorArgument | SymIntArgument | SymFloatArgument]:
    """Return the class of a signature's argument for a tensor or an open number."""
    return {SymInt: SymIntArgument, SymFloat: SymFloatArgument}.get(type(value), TensorArgument)


class InputKind(Enum):
    """The role of an input."""

    USER_INPUT = auto()
    PARAMETER = auto()
    BUFFER = auto()
    CONSTANT_TENSOR = auto()
    CUSTOM_OBJ = auto()
    TOKEN = auto()


class OutputKind(Enum):
    """The role of an output."""

    USER_OUTPUT = auto()
    LOSS_OUTPUT = auto()
    BUFFER_MUTATION = auto()
    PARAMETER_MUTATION = auto()
    GRADIENT_TO_PARAMETER = auto()
    GRADIENT_TO_USER_INPUT = auto()
    USER_INPUT_MUTATION = auto()
    TOKEN = auto()


@dataclass
class InputSpec:
    """One input. `target` is the qualified name of its parameter, buffer or constant; `persistent` says whether a buffer is in
    the state dict."""

    kind: InputKind
    arg: Argument
    target: str | None
    persistent: bool | None = None

    def __post_init__(self) -> None:
        if self.kind is InputKind.BUFFER and self.persistent is None:
            raise AssertionError("Failed to specify persistent flag on BUFFER.")

    def __str__(self) -> str:
        target = "" if self.target is None else f" target='{self.target}'"
        persistent = "" if self.persistent is None else f" persistent={self.persistent}"
        return f"{self.arg.name}: {self.kind.name}{target}{persistent}"


@dataclass
class OutputSpec:
    """One output. `target` names the buffer, parameter or input that it updates."""

    kind: OutputKind
    arg: Argument
    target: str | None

    def __str__(self) -> str:
        target = "" if self.target is None else f" target='{self.target}'"
        return f"{getattr(self.arg, 'name', '')}: {self.kind.name}{target}"


@dataclass
class ExportBackwardSignature:
    """The gradients among the outputs of a joint graph. `export` makes no joint graphs."""

    gradients_to_parameters: dict[str, str]
    gradients_to_user_inputs: dict[str, str]
    loss_output: str


def _value(argument: Argument) -> Any:
    """Return a node's name, or a constant's value."""
    return argument.value if isinstance(argument, ConstantArgument) else argument.name


@dataclass
class ExportGraphSignature:
    """The inputs and outputs of an exported graph, in the graph's order."""

    input_specs: list[InputSpec] = field(default_factory=list)
    output_specs: list[OutputSpec] = field(default_factory=list)

    def _targets(self, kind: InputKind) -> tuple[str, ...]:
        return tuple(spec.target for spec in self.input_specs if spec.kind is kind)

    def _inputs_to(self, kind: InputKind) -> Mapping[str, str]:
        return MappingProxyType({spec.arg.name: spec.target for spec in self.input_specs if spec.kind is kind})

    def _mutations(self, kind: OutputKind) -> Mapping[str, str]:
        return MappingProxyType({spec.arg.name: spec.target for spec in self.output_specs if spec.kind is kind})

    @property
    def parameters(self) -> tuple[str, ...]:
        """The qualified names of the parameters."""
        return self._targets(InputKind.PARAMETER)

    @property
    def buffers(self) -> tuple[str, ...]:
        """The qualified names of the buffers."""
        return self._targets(InputKind.BUFFER)

    @property
    def non_persistent_buffers(self) -> set[str]:
        """The qualified names of buffers that the state dict leaves out."""
        return {spec.target for spec in self.input_specs if spec.kind is InputKind.BUFFER and not spec.persistent}

    @property
    def lifted_tensor_constants(self) -> tuple[str, ...]:
        """The names of constant tensors."""
        return self._targets(InputKind.CONSTANT_TENSOR)

    @property
    def lifted_custom_objs(self) -> tuple[str, ...]:
        """The names of objects of script classes: none."""
        return self._targets(InputKind.CUSTOM_OBJ)

    @property
    def user_inputs(self) -> tuple:
        """The user's inputs: names of nodes, and values of constants."""
        return tuple(_value(spec.arg) for spec in self.input_specs if spec.kind is InputKind.USER_INPUT)

    @property
    def user_outputs(self) -> tuple:
        """The user's outputs: names of nodes, and values of constants."""
        kinds = (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT)
        return tuple(_value(spec.arg) for spec in self.output_specs if spec.kind in kinds)

    @property
    def inputs_to_parameters(self) -> Mapping[str, str]:
        """Maps inputs to parameters."""
        return self._inputs_to(InputKind.PARAMETER)

    @property
    def inputs_to_buffers(self) -> Mapping[str, str]:
        """Maps inputs to buffers."""
        return self._inputs_to(InputKind.BUFFER)

    @property
    def inputs_to_lifted_tensor_constants(self) -> Mapping[str, str]:
        """Maps inputs to constant tensors."""
        return self._inputs_to(InputKind.CONSTANT_TENSOR)

    @property
    def inputs_to_lifted_custom_objs(self) -> Mapping[str, str]:
        """Maps inputs to objects of script classes: none."""
        return self._inputs_to(InputKind.CUSTOM_OBJ)

    @property
    def buffers_to_mutate(self) -> Mapping[str, str]:
        """Maps outputs to the buffers that they update."""
        return self._mutations(OutputKind.BUFFER_MUTATION)

    @property
    def parameters_to_mutate(self) -> Mapping[str, str]:
        """Maps outputs to the parameters that they update."""
        return self._mutations(OutputKind.PARAMETER_MUTATION)

    @property
    def user_inputs_to_mutate(self) -> Mapping[str, str]:
        """Maps outputs to the user's inputs that they update."""
        return self._mutations(OutputKind.USER_INPUT_MUTATION)

    @property
    def backward_signature(self) -> ExportBackwardSignature | None:
        """None: exported graphs have no backward."""
        return None

    @property
    def assertion_dep_token(self) -> Mapping[int, str] | None:
        """None: nothing orders assertions."""
        return None

    def replace_all_uses(self, old: str, new: str) -> None:
        """Rename a node in all specs."""
        for spec in (*self.input_specs, *self.output_specs):
            if getattr(spec.arg, "name", None) == old:
                spec.arg.name = new

    def __str__(self) -> str:
        inputs, outputs = ("\n".join(map(str, specs)) for specs in (self.input_specs, self.output_specs))
        return f"\n# inputs\n{inputs}\n\n# outputs\n{outputs}\n"
