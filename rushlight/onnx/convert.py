"""Conversion of an exported program to an ONNX model: translate each node of the functional graph.

The input is an `ExportedProgram`, the result a ModelProto that ONNX's checker accepts.
"""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from rushlight.core.dtype import float64, int64
from rushlight.core.symbolic import SymFloat, SymInt, sym_float
from rushlight.core.tensor import Tensor
from rushlight.export import ExportedProgram
from rushlight.export.graph_signature import InputKind, InputSpec, OutputKind
from rushlight.fx.node import Node, map_arg
from rushlight.onnx.builder import GraphBuilder, Value, dimensions, element_type
from rushlight.onnx.errors import OnnxExporterError
from rushlight.onnx.translations import TRANSLATIONS
from rushlight.ops.dispatcher import OpOverload
from rushlight.version import __version__

_SIZES = {operator.add: "Add", operator.sub: "Sub", operator.mul: "Mul"}
_FLOATS = {
    **_SIZES, operator.truediv: "Div", operator.pow: "Pow", operator.neg: "Neg", operator.abs: "Abs", math.sqrt: "Sqrt",
    sym_float: "Identity",
}  # fmt: skip
"""Operators for the functions of which floats that follow from open sizes consist."""
# The versions of the file format in which versions of the operators came; later ones than ONNX Runtime knows need not be used.
_FILE_VERSIONS = {13: 7, 14: 7, 15: 8, 16: 8, 17: 8, 18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11}


def to_model(
    onnx: ModuleType, program: ExportedProgram, opset: int, input_names: Sequence[str], output_names: Sequence[str]
) -> Any:
    """Return the model of a functional program. OnnxExporterError that names all operators without a translation."""
    _check_translations(program)
    converter = _Converter(onnx, program, opset, input_names, output_names)
    graph = converter.run()
    model = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", opset)], producer_name="rushlight", producer_version=__version__,
        ir_version=_FILE_VERSIONS[opset],
    )  # fmt: skip
    onnx.checker.check_model(model)
    return model


def opset_versions() -> tuple[int, int]:
    """Return the first and the last version of the operators that models can be made of."""
    return min(_FILE_VERSIONS), max(_FILE_VERSIONS)


def _check_translations(program: ExportedProgram) -> None:
    missing = sorted({
        node.target.name() if isinstance(node.target, OpOverload) else str(node.target)
        for node in program.graph.nodes if node.op == "call_function" and not _is_translated(node.target)
    })  # fmt: skip
    if missing:
        raise OnnxExporterError(f"No translation into ONNX for the operators: {', '.join(missing)}")


def _is_translated(target: Any) -> bool:
    if isinstance(target, OpOverload):
        return target.namespace == "aten" and target._opname in TRANSLATIONS
    return target in _FLOATS or target in (operator.getitem, operator.floordiv, operator.mod)


class _Converter:
    """Walks the nodes in order; `values` are the ONNX values of nodes."""

    def __init__(
        self, onnx: ModuleType, program: ExportedProgram, opset: int, inputs: Sequence[str], outputs: Sequence[str]
    ) -> None:
        self.builder = GraphBuilder(onnx, opset)
        self.program = program
        self.helper = onnx.helper
        self.input_names = list(inputs)
        self.output_names = list(outputs)
        self.values: dict[Node, Any] = {}
        self.inputs: list[Any] = []

    def run(self) -> Any:
        """Return the ONNX graph."""
        specs = {spec.arg.name: spec for spec in self.program.graph_signature.input_specs}
        for name in (*self.input_names, *self.output_names):
            self.builder.new_name(name)
        outputs: list[Any] = []
        for node in self.program.graph.nodes:
            if node.op == "placeholder":
                self._input(node, specs[node.name])
            elif node.op == "output":
                outputs = self._outputs(node.args[0])
            else:
                self.values[node] = self._call(node)
        nodes = self.builder.nodes
        used = {name for node in nodes for name in node.input}
        constants = [tensor for name, tensor in self.builder.initializers.items() if name in used]
        return self.helper.make_graph(nodes, "main_graph", self.inputs, outputs, constants)

    def _input(self, node: Node, spec: InputSpec) -> None:
        value = node.meta["val"]
        if spec.kind is not InputKind.USER_INPUT:
            if node.users:
                held = {**self.program.constants, **self.program.state_dict}
                name = self.builder.new_name(spec.target)
                self.values[node] = Value(self.builder.add_tensor(name, held[spec.target]), value)
        elif isinstance(value, Tensor):
            wanted = self.input_names[len(self.inputs)] if len(self.inputs) < len(self.input_names) else None
            name = wanted or self.builder.new_name(node.name)
            self.values[node] = Value(name, value)
            self.inputs.append(self._value_info(name, value))

    def _value_info(self, name: str, value: Any) -> Any:
        if not isinstance(value, Tensor):
            kind = float64 if type(value) is SymFloat else int64
            return self.helper.make_tensor_value_info(name, element_type(kind), [])
        sizes = dimensions(value, self.program._size_names)
        return self.helper.make_tensor_value_info(name, element_type(value.dtype), sizes)

    def _outputs(self, results: Sequence[Any]) -> list[Any]:
        """Return the user's results that are tensors or sizes, each under a name of its own."""
        specs = self.program.graph_signature.output_specs
        kept = [
            result for spec, result in zip(specs, results, strict=True)
            if spec.kind is OutputKind.USER_OUTPUT and isinstance(result, Node)
        ]  # fmt: skip
        if len(self.output_names) > len(kept):
            raise OnnxExporterError(f"{len(self.output_names)} output_names for {len(kept)} outputs")
        outputs = []
        for index, node in enumerate(kept):
            given = self.output_names[index] if index < len(self.output_names) else self.builder.new_name(f"output_{index}")
            value = self.values[node]
            self.builder.nodes.append(self.helper.make_node("Identity", [value.name], [given], name=f"output_{index}"))
            outputs.append(self._value_info(given, value.meta))
        return outputs

    def _call(self, node: Node) -> Value:
        args, kwargs = map_arg(node.args, self.values.get), map_arg(node.kwargs, self.values.get)
        meta = node.meta["val"]
        if not isinstance(node.target, OpOverload):
            return self._convert_builtin(node.target, args, meta)
        self.builder.output, self.builder.output_op = Value(None, _first_result(meta)), node.target._opname
        name = TRANSLATIONS[node.target._opname](self.builder, *args, **_select_arguments(node.target._opname, kwargs))
        return Value(name, meta)

    def _convert_builtin(self, function: Callable, args: tuple, meta: Any) -> Value:
        """Convert arithmetic on sizes, and the selection of one of several results."""
        if function is operator.getitem:
            results, index = args
            if index >= len(results.name):
                raise OnnxExporterError(f"result {index} of an operator is used, which its translation does not give")
            return Value(results.name[index], meta)
        if type(meta) is SymFloat:
            if function not in _FLOATS:
                raise OnnxExporterError(f"No translation into ONNX for {function.__name__} of floats that follow from sizes")
            operands = [self.builder.tensor(each, float64) for each in args]
            return Value(self.builder.op(_FLOATS[function], *operands), meta)
        first, second = (self.builder.tensor(each, int64) for each in args)
        if function in _SIZES:
            return Value(self.builder.op(_SIZES[function], first, second), meta)
        if function is operator.mod:
            return Value(self.builder.op("Mod", first, second), meta)
        return Value(self.builder.op("Div", first, second), meta)  # sizes are not negative


def _first_result(meta: Any) -> Any:
    return meta if isinstance(meta, Tensor | SymInt | SymFloat) or not isinstance(meta, tuple | list) else meta[0]


def _select_arguments(name: str, kwargs: dict) -> dict:
    """Return the keyword arguments that a translation accepts, without those that do not matter, such as the device.

    OnnxExporterError if another argument is set that the translation does not accept."""
    parameters = inspect.signature(TRANSLATIONS[name]).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return kwargs
    unknown = {key: value for key, value in kwargs.items() if key not in parameters and key not in ("device", "layout")}
    if any(value is not None for value in unknown.values()) and not set(unknown) <= {"dtype", "pin_memory", "memory_format"}:
        raise OnnxExporterError(f"the arguments {sorted(unknown)} of aten::{name} are not translated")
    return {key: value for key, value in kwargs.items() if key in parameters}
