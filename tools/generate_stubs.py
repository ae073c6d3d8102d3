"""Writes the type stubs of `rushlight`, its packages of operators, `rushlight.core.tensor` and `rushlight._C`.

In: the imported package: operator schemas, Tensor's attributes, signatures of functions, the imports of `__init__.py`.
Out: what editors and type checkers read in place of these modules. The functions and methods of operators are made from
schemas at import, where tools that only read source cannot see them. `make stubs` runs it.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, ModuleType

import rushlight
import rushlight._C as _C
from rushlight.core import tensor as tensor_module
from rushlight.core.tensor import Tensor
from rushlight.ops import bindings, operators
from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.packet import OpOverloadPacket
from rushlight.ops.schema import Argument, Type

PACKAGE = Path(rushlight.__file__).parent
# Types get an underscore before their names: Tensor and the package have attributes called int, float, dtype and so on.
HEADER = """# Written by tools/generate_stubs.py; "make stubs" writes it anew.
# ruff: noqa
# mypy: disable-error-code="overload-cannot-match, overload-overlap, override, misc"
from builtins import bool as _bool, float as _float, int as _int, type as _type
from collections.abc import Iterator as _Iterator, Sequence as _Sequence
from typing import Any as _Any, Self as _Self, overload as _overload
from rushlight.core.device import device as _device
from rushlight.core.dtype import dtype as _dtype
from rushlight.core.generator import Generator as _Generator
from rushlight.core.layout import layout as _layout, memory_format as _memory_format
from rushlight.core.size import Size as _Size
from rushlight.core.storage import UntypedStorage as _UntypedStorage
from rushlight.core.tensor_impl import TensorImpl as _TensorImpl
"""
ALIASES = set(re.findall(r"as _(\w+)", HEADER))
SCHEMA_TYPES = {
    "Tensor": "Tensor", "int": "_int", "float": "_float", "bool": "_bool", "str": "str", "Scalar": "_Number",
    "ScalarType": "_dtype", "Layout": "_layout", "Device": "_device | str", "MemoryFormat": "_memory_format",
    "Generator": "_Generator", "Storage": "_UntypedStorage", "Any": "_Any",
}  # fmt: skip
# Methods whose annotations do not say what they return for which arguments, and methods without annotations.
BY_HAND = {
    "size": ["(self) -> _Size", "(self, dim: _int) -> _int"],
    "stride": ["(self) -> tuple[_int, ...]", "(self, dim: _int) -> _int"],
    "type": ["(self) -> str", "(self, dtype: _dtype | str) -> Tensor"],
    "item": ["(self) -> _bool | _int | _float"], "tolist": ["(self) -> _Any"],
    "__new__": ["(cls, *args: _Any) -> _Self"], "__iter__": ["(self) -> _Iterator[Tensor]"],
    "__float__": ["(self) -> _float"], "__complex__": ["(self) -> complex"],
}  # fmt: skip
AS_IN_OBJECT = ("__dir__", "__format__", "__hash__", "__reduce_ex__", "__repr__")


# Operators, from their schemas


def type_text(kind: Type) -> str:
    """A schema type as the annotation of a parameter."""
    text = SCHEMA_TYPES[kind.base]
    if kind.is_list:
        element = f"{text} | None" if kind.optional_elements else text
        text = f"_Sequence[{element}]" + (f" | {text}" if kind.length is not None else "")
    return f"{text} | None" if kind.optional else text


def default_text(value: object) -> str:
    """A default as source where it is a plain value, else three dots."""
    plain = value is None or isinstance(value, str | int | tuple) or (isinstance(value, float) and abs(value) < 1e300)
    return repr(value) if plain else "..."


def parameter(op: OpOverload, argument: Argument, as_method: bool) -> str:
    """One parameter. `self` is called `input` in functions, as in torch."""
    if argument.name == "self" and as_method:
        return "self"
    name, kind = "input" if argument.name == "self" else argument.name, type_text(argument.type)
    if name in ("other", "exponent") and kind == "Tensor" and (op.overload != "default" or "floor_divide" in op.name):
        kind = "Tensor | _Number"
    if argument.has_default:
        hidden = argument.default is None and not argument.type.optional
        kind += " = " + ("..." if hidden else default_text(argument.default))
    # Nothing can be passed by a name that is a keyword of Python.
    return f"{name}_: {kind}, /" if name == "from" else f"{name}: {kind}"


def signature(op: OpOverload, as_method: bool, sizes_apart: bool = False) -> str:
    """The parameters and result of one overload; `sizes_apart` gives the form with the sizes one by one.

    Besides the schema's own, the bindings take `requires_grad` where tensors are made, and `out` in other functions.
    """
    schema = op._schema
    kinds = ["tuple[Tensor, ...]" if returned.type.is_list else type_text(returned.type) for returned in schema.returns]
    result = kinds[0] if len(kinds) == 1 else f"tuple[{', '.join(kinds)}]" if kinds else "None"
    positional = [parameter(op, argument, as_method) for argument in schema.arguments if not argument.kwarg_only]
    keywords = [parameter(op, argument, as_method) for argument in schema.arguments if argument.kwarg_only]
    if "device" in schema.positions and not schema.is_view:
        keywords.append("requires_grad: _bool = False")
    elif not (as_method or schema.is_view or schema.is_mutable or "out" in schema.positions) and set(kinds) == {"Tensor"}:
        keywords.append(f"out: {result} | None = None")
    if sizes_apart:
        position = bindings._VARIADIC[schema.name]
        positional[position:] = [f"*{schema.arguments[position].name}: _int"]
    elif keywords:
        positional.append("*")
    return f"({', '.join(positional + keywords)}) -> {result}"


def operator(name: str, as_method: bool) -> list[str]:
    """The signatures of an operator's function or method."""
    overloads: list[OpOverload] = getattr(bindings.aten, name)._overloads
    if as_method:
        overloads = [op for op in overloads if op._schema.arguments[0].name == "self"]
    signatures = list(dict.fromkeys(signature(op, as_method) for op in overloads))
    return signatures + ([signature(overloads[0], as_method, True)] if name in bindings._VARIADIC else [])


def is_operator(value: object) -> bool:
    """Whether `value` is a function that the bindings made from an operator."""
    if getattr(value, "__module__", "") not in ("rushlight", "rushlight.ops.aten"):
        return False
    return isinstance(getattr(bindings.aten, value.__name__, None), OpOverloadPacket)


class Stub:
    """The text of one stub: the lines of its body, and the imports that they need."""

    def __init__(self, module: str):
        self.module = module
        self.imports: set[str] = set()
        self.lines: list[str] = []

    def text(self) -> str:
        """The whole file."""
        number = "_Number = _bool | _int | _float | complex"
        return "\n".join([HEADER + "\n".join(sorted(self.imports)), number, *self.lines, ""])

    def define(self, name: str, signatures: list[str], indent: str = "") -> None:
        """Declare a function, with overloads where it has several signatures."""
        for text in signatures:
            self.lines += [f"{indent}@_overload"] * (len(signatures) > 1) + [f"{indent}def {name}{text}: ..."]

    def annotation(self, written: object, function: Callable) -> str:
        """An annotation of `function` in the names of this stub."""
        names = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
        scope = inspect.unwrap(function).__globals__
        return names.sub(lambda found: self._name(found[0], scope), written) if written else "_Any"

    def _name(self, name: str, scope: dict) -> str:
        value = scope.get(name, getattr(builtins, name, None))
        if name in ALIASES:
            return f"_{name}"
        if isinstance(value, ModuleType):
            self.imports.add(f"import {value.__name__} as {name}")
            return name
        source = getattr(value, "__module__", None)
        if value is None or value is Tensor or source in ("builtins", self.module):
            return name
        if not hasattr(sys.modules.get(source), getattr(value, "__name__", "")):
            return "_Any"
        self.imports.add(f"from {source} import {value.__name__} as _{name.lstrip('_')}")
        return f"_{name.lstrip('_')}"

    def signature(self, function: FunctionType, as_method: bool = False) -> str:
        """The parameters and result of a Python function."""
        kinds, parts = function.__annotations__, []
        for position, (name, part) in enumerate(inspect.signature(function).parameters.items()):
            if part.kind is part.KEYWORD_ONLY and not any(piece.startswith("*") for piece in parts):
                parts.append("*")
            stars = {part.VAR_POSITIONAL: "*", part.VAR_KEYWORD: "**"}.get(part.kind, "")
            kind = "" if as_method and position == 0 else f": {self.annotation(kinds.get(name), function)}"
            default = "" if part.default is part.empty else f" = {default_text(part.default)}"
            parts.append(f"{stars}{name}{kind}{default}")
        return f"({', '.join(parts)}) -> {self.annotation(kinds.get('return'), function)}"

    def method(self, name: str, value: FunctionType) -> list[str]:
        """The signatures of a method of Tensor. The functions behind Python's operators have no annotations."""
        if name in BY_HAND or is_operator(value):
            return BY_HAND[name] if name in BY_HAND else operator(value.__name__, True)
        if not value.__annotations__ and value.__module__ == operators.__name__:
            return [f"(self{', other: Tensor | _Number' * (value.__code__.co_argcount > 1)}) -> Tensor"]
        return [self.signature(value, as_method=True)]


def tensor_stub() -> str:
    """The class Tensor with everything that is attached to it, and the functions of its module."""
    stub = Stub(tensor_module.__name__)
    stub.lines += ["class Tensor:", "    _impl: _TensorImpl"]
    for name, value in sorted(vars(Tensor).items()):
        if isinstance(value, bool):
            stub.lines.append(f"    {name}: _bool")
        elif isinstance(value, property):
            kind = stub.annotation(value.fget.__annotations__.get("return", "Tensor"), value.fget)
            stub.lines += ["    @property", f"    def {name}(self) -> {kind}: ..."]
            if value.fset:
                stub.lines += [f"    @{name}.setter", f"    def {name}(self, value: {kind}) -> None: ..."]
        elif isinstance(value, FunctionType | staticmethod) and name not in AS_IN_OBJECT:
            stub.define(name, stub.method(name, value), indent="    ")
        elif isinstance(value, _C.BinaryMethod):  # Python's operators between tensors and numbers
            stub.define(name, ["(self, other: Tensor | _Number) -> Tensor"], indent="    ")
    for name, value in vars(tensor_module).items():
        if isinstance(value, FunctionType) and value.__module__ == stub.module:
            stub.define(name, [stub.signature(value)])
    return stub.text()


def package_stub() -> str:
    """The names that `__init__.py` imports, at once or later, and defines, and the functions of all operators."""
    stub = Stub("rushlight")
    for node in ast.parse((PACKAGE / "__init__.py").read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module.startswith("rushlight"):
            for name, public in ((alias.name, alias.asname or alias.name) for alias in node.names):
                if not public.startswith("_"):  # only `import x as x` makes a name of a stub public
                    found = f"from {node.module} import {name} as {name}"
                    stub.lines.append(found if name == public else _value(public))
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            stub.define(node.name, [stub.signature(getattr(rushlight, node.name))])
        elif isinstance(node, ast.Assign):
            names = (part.id for target in node.targets for part in ast.walk(target) if isinstance(part, ast.Name))
            stub.lines += [_value(name) for name in names if name == "__version__" or not name.startswith("_")]
    later = [*((name, "rushlight") for name in rushlight._PACKAGES), *rushlight._FUNCTIONS.items()]
    stub.lines += [f"from {module} import {name} as {name}" for name, module in later]
    for name, value in sorted(vars(rushlight).items()):
        if is_operator(value):
            stub.define(name, operator(value.__name__, False))
    return stub.text()


def operators_stub(package: str) -> str:
    """A package of operators as `rushlight.linalg`: the functions of the operators `linalg_*`, and what it imports."""
    stub, functions = Stub(f"rushlight.{package}"), bindings.functions_of(package)
    stub.imports.add("from rushlight.core.tensor import Tensor")
    for node in ast.parse((PACKAGE / package / "__init__.py").read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module != bindings.__name__:
            stub.lines += [f"from {node.module} import {alias.name} as {alias.name}" for alias in node.names]
    for name in sorted(functions):
        stub.define(name, operator(f"{package}_{name}", False))
    return stub.text()


def _value(name: str) -> str:
    value = getattr(rushlight, name)
    kind = "None" if value is None else type(value).__name__
    return f"{name}: {f'_{kind}' if kind in ALIASES else kind}"


def extension_stub() -> str:
    """The extension module: the first line of each docstring in C is the function's signature."""
    head = [*HEADER.splitlines()[:2], "from collections.abc import Sequence"]
    block = ["class Block:", "    data_ptr: int", "    nbytes: int"]
    functions = [f"def {value.__doc__.splitlines()[0]}: ..." for _, value in inspect.getmembers(_C, inspect.isbuiltin)]
    return "\n".join([*head, *block, *functions, ""])


def stubs() -> dict[Path, str]:
    """The text of every stub by its path."""
    made = {"__init__.pyi": package_stub(), "core/tensor.pyi": tensor_stub(), "_C.pyi": extension_stub()}
    made |= {f"{package}/__init__.pyi": operators_stub(package) for package in ("fft", "linalg", "special")}
    return {PACKAGE / name: text for name, text in made.items()}


if __name__ == "__main__":
    for path, text in stubs().items():
        path.write_text(text)
