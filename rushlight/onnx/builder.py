"""The ONNX graph that one export builds.

In: calls of ONNX operators on values and Python numbers. Out: nodes and initializers of an ONNX graph. `onnx` is imported when
a model is exported, since it is no dependency of this package.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from rushlight.core.dtype import dtype, float64, int64
from rushlight.core.symbolic import SymFloat, SymInt
from rushlight.core.tensor import Tensor
from rushlight.onnx.errors import OnnxExporterError

ELEMENT_TYPES = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9, "float16": 10,
    "float64": 11, "uint32": 12, "uint64": 13, "complex64": 14, "complex128": 15, "bfloat16": 16, "float8_e4m3fn": 17,
    "float8_e5m2": 19,
}  # fmt: skip
"""The numbers of dtypes in ONNX files."""


class Value(NamedTuple):
    """A value of the ONNX graph, and what it is in the exported program: a fake tensor, a size, a float, or a tuple of such."""

    name: Any
    meta: Any

    @property
    def dtype(self) -> dtype:
        """The dtype of a tensor; a size is an int64, a float that follows from sizes a float64."""
        if type(self.meta) is SymFloat:
            return float64
        return self.meta.dtype if isinstance(self.meta, Tensor) else int64

    @property
    def shape(self) -> tuple:
        """The sizes of a tensor; a size has none."""
        return tuple(self.meta.shape) if isinstance(self.meta, Tensor) else ()


def element_type(kind: dtype) -> int:
    """Return the number of a dtype. OnnxExporterError where ONNX has none."""
    if kind.name not in ELEMENT_TYPES:
        raise OnnxExporterError(f"ONNX has no elements of type {kind}")
    return ELEMENT_TYPES[kind.name]


class GraphBuilder:
    """Nodes and initializers, each constant once. Sizes are scalars of int64; `opset` is the version of the operators."""

    def __init__(self, onnx: ModuleType, opset: int) -> None:
        self.onnx = onnx
        self.opset = opset
        self.nodes: list[Any] = []
        self.initializers: dict[str, Any] = {}
        self.output: Value | None = None  # the first result of the operator that is being translated
        self.output_op = ""  # the operator's name
        self._constants: dict[tuple, str] = {}
        self._taken: set[str] = set()

    def new_name(self, wanted: str) -> str:
        """Return a name that no other value has."""
        name, count = wanted, 0
        while name in self._taken:
            count += 1
            name = f"{wanted}_{count}"
        self._taken.add(name)
        return name

    def op(self, kind: str, *inputs: Any, count: int = 1, **attributes: Any) -> Any:
        """Add a node. Inputs are names, values, or None for one that is left out. The name of its result, or `count` names."""
        names = ["" if each is None else each.name if isinstance(each, Value) else each for each in inputs]
        while names and not names[-1]:
            names.pop()
        outputs = [self.new_name(f"{kind.lower()}_{len(self.nodes)}") for _ in range(count)]
        attributes = {name: value for name, value in attributes.items() if value is not None}
        self.nodes.append(self.onnx.helper.make_node(kind, names, outputs, name=f"{kind}_{len(self.nodes)}", **attributes))
        return outputs[0] if count == 1 else outputs

    # Constants

    def add_tensor(self, name: str, tensor: Tensor) -> str:
        """Return an initializer with the contents of a tensor."""
        array = np.ascontiguousarray(tensor.detach().resolve_conj().cpu().numpy())
        self._store(name, tensor.dtype, tuple(tensor.shape), array)
        return name

    def _store(self, name: str, kind: dtype, shape: tuple, array: np.ndarray) -> None:
        self._taken.add(name)
        self.initializers[name] = self.onnx.helper.make_tensor(name, element_type(kind), shape, array.tobytes(), raw=True)

    def scalar(self, value: Any, kind: dtype) -> str:
        """Return a constant without dimensions."""
        return self._constant(np.array(value, dtype=kind.numpy), kind)

    def ints(self, values: Sequence[int]) -> str:
        """Return a constant list of integers."""
        return self._constant(np.array(values, dtype=np.int64).reshape(-1), int64)

    def _constant(self, array: np.ndarray, kind: dtype) -> str:
        key = (kind.name, array.shape, array.tobytes())
        if key not in self._constants:
            self._constants[key] = name = self.new_name(f"constant_{len(self._constants)}")
            self._store(name, kind, array.shape, array)
        return self._constants[key]

    # Conversions

    def tensor(self, value: Any, kind: dtype) -> str:
        """Return a value or a Python number as a tensor of a dtype."""
        if not isinstance(value, Value):
            return self.scalar(value, kind)
        return value.name if value.dtype is kind else self.cast(value, kind)

    def cast(self, value: Value | str, kind: dtype) -> str:
        """Return the value converted to a dtype."""
        return self.op("Cast", value, to=element_type(kind))

    def shape(self, sizes: Sequence[Any]) -> str:
        """Return a list of sizes, some of which may be values, as one tensor."""
        if not any(isinstance(size, Value) for size in sizes):
            return self.ints(sizes)
        parts = [self.op("Unsqueeze", size, self.ints([0])) if isinstance(size, Value) else self.ints([size]) for size in sizes]
        return self.op("Concat", *parts, axis=0)

    def reshape(self, value: Value | str, sizes: Sequence[Any]) -> str:
        """Return the value with other sizes. A single open size is left to the runtime."""
        if sum(isinstance(size, Value) for size in sizes) == 1 and not any(size in (-1, 0) for size in sizes):
            sizes = [-1 if isinstance(size, Value) else size for size in sizes]
        return self.op("Reshape", value, self.shape(sizes), allowzero=1 if 0 in [*sizes] and self.opset >= 14 else None)

    def reduce(self, kind: str, value: Value | str, dims: Sequence[int], keepdim: bool) -> str:
        """Return a reduction along dimensions. Versions before 18 have the dimensions as an attribute, but for sums."""
        if kind == "ReduceSum" or self.opset >= 18:
            return self.op(kind, value, self.ints(dims), keepdims=int(keepdim))
        return self.op(kind, value, axes=list(dims), keepdims=int(keepdim))


def dimensions(value: Any, names: dict[str, str]) -> list[int | str]:
    """Return the sizes of a tensor as ONNX has them: open ones are called as the user calls them."""
    return [_dimension_name(size, names) if type(size) is SymInt else int(size) for size in value.shape]


def _dimension_name(size: SymInt, names: dict[str, str]) -> str:
    text = str(size.expr)
    return names.get(text, text)
