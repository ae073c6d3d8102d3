"""The model being exported, before it is written: methods with their inputs and outputs, state, weights, and C++ functions.

Made by `exported.py` and `scripted.py`; `source.py` and `header.py` write it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from rushlight.core.dtype import dtype
from rushlight.core.tensor import Tensor
from rushlight.deploy.graph_form import GraphForm
from rushlight.deploy.spelling import DTYPES, NotExportable, c_constant, constant_text, identifier
from rushlight.deploy.weights import Weights
from rushlight.inductor.sizes import Size

MAX_DIMS = 8

_INTERFACE = (
    "create create_from_memory share destroy error set_threads reset seed method_count method_at run tensor_of "
    "tensor value status dtype kind parameter method weights add_worker work rl rl_team rl_handle "
    "signature signatures threads free"
)
_OWN_NAMES = frozenset(_INTERFACE.split())
"""Names that no method may have: the C interface uses them after the model's name, or Python's or JavaScript's handles do."""


@dataclass(frozen=True)
class Parameter:
    """An input or output of a method. `kind` is "tensor", "int", "float", "bool", "string", "list", "tuple", "dict" or "value".
    A tensor also has a dtype and `sizes`: numbers or names of open sizes. `bounds` are the limits of open sizes, by name.
    `written` says that the model writes to the input: to its memory, or to that of tensors in it."""

    name: str
    kind: str
    dtype: dtype | None = None
    sizes: tuple[int | str, ...] | None = None
    bounds: tuple[tuple[str, int, int | None], ...] = ()
    about: str = ""
    written: bool = False

    def __str__(self) -> str:
        """The form in a signature: `x: float32[n, 3]`, or `x: float32[n, 3] (written to)`."""
        return f"{self.name}: {self._type_text()}{' (written to)' if self.written else ''}"

    def _type_text(self) -> str:
        if self.kind != "tensor" or self.dtype is None:
            return self.about or self.kind
        return self.dtype.name + ("" if self.sizes is None else f"[{', '.join(map(str, self.sizes))}]")


@dataclass
class Method:
    """A method and the names of its forms, the functions that run it. Each form supports some arguments; forms are tried in
    order."""

    name: str
    inputs: list[Parameter]
    outputs: list[Parameter]
    forms: list[str] = field(default_factory=list)

    def mark_written(self, positions: Collection[int]) -> None:
        """Record the inputs that a form writes to."""
        self.inputs = [
            replace(each, written=each.written or position in positions) for position, each in enumerate(self.inputs)
        ]


class Model:
    """Collects the parts of a model."""

    def __init__(self, name: str):
        self.name = name
        self.weights = Weights()
        self.methods: list[Method] = []
        self.includes: dict[str, None] = {}
        self.functions: list[str] = []  # functions that only need the handle's base class
        self.forms: list[str] = []  # functions that need the whole handle
        self.states: list[tuple[str, object]] = []  # name and initial value of each state
        self.programs = 0
        self.looks_at_values = False  # whether functions of deployed_values.h are called
        self.uses_language = False  # whether a direct form is used

    def method_name(self, wished: str) -> str:
        """Return the interface's name for a method: unique, and different from the interface's own names."""
        return identifier(wished, {*_OWN_NAMES, *(each.name for each in self.methods)}, "method", behind_prefix=True)

    def words_of_header(self) -> set[str]:
        """Return names that parameters must not have in the header."""
        types, macros = ("tensor", "value", "status"), ("API", "H", "MAX_RANK", "MAX_THREADS")
        own = [*(f"{self.name}_{each}" for each in types), *(f"{self.name.upper()}_{each}" for each in macros)]
        return {"model", self.name, *own}

    def add_graph(self, form: GraphForm) -> None:
        """Add the functions of a graph, and count its programs."""
        self.programs += 1
        self.includes.update(dict.fromkeys(form.includes))
        self.functions.append(form.text)

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Undo what the block added to the model if it raises. States stay, because other forms may use them."""
        before = self.programs, len(self.functions), len(self.forms)
        try:
            yield
        except BaseException:
            self.programs = before[0]
            del self.functions[before[1] :], self.forms[before[2] :]
            raise

    def add_state(self, name: str, value: object) -> int:
        """Add a value that persists between runs; returns its number."""
        self.states.append((name, value))
        return len(self.states) - 1

    def add_tensor_state(self, name: str, tensor: Tensor) -> int:
        """Return the number of a tensor state that the model writes to; methods may share it."""
        found = next((number for number, (_, value) in enumerate(self.states) if value is tensor), None)
        return self.add_state(name, tensor) if found is None else found

    def identity(self, source: str) -> bytes:
        """Return 32 bytes that identify the model's source and weights."""
        return hashlib.sha256(source.encode() + self.weights.digest().encode()).digest()


def check_tensor(name: str, kind: dtype, sizes: Sequence[Size]) -> None:
    """Raise NotExportable for a tensor that the interface does not support."""
    if kind.name not in DTYPES:
        raise NotExportable(f"{name} is of dtype {kind}; tensors that cross the interface are of {', '.join(DTYPES)}")
    if len(sizes) > MAX_DIMS:
        raise NotExportable(f"{name} has {len(sizes)} dimensions; tensors that cross the interface have at most {MAX_DIMS}")


def tensor_text(tensor: Tensor, weights: Weights) -> str:
    """Return the C++ expression of type `value` for a tensor in the weights. The function has `self`."""
    check_tensor("a tensor that the model holds", tensor.dtype, tensor.shape)
    impl = tensor._impl
    sizes, strides = (f"sizes_of({', '.join(f'{each}L' for each in row) or '0'}).numbers" for row in (impl.sizes, impl.strides))
    address = f"(void*)(self.held->data + {weights.add(tensor)}L)"
    return f"of_tensor(tensor_of({address}, {c_constant(impl.dtype)}, {len(impl.sizes)}, {sizes}, {strides}))"


def initial_text(value: object, weights: Weights, lines: list[str], name: str = "items") -> str:
    """Return the C++ expression for a state's initial value; `lines` receives statements that must come before."""
    if isinstance(value, Tensor):
        return tensor_text(value, weights)
    if not isinstance(value, list | tuple | dict):
        return constant_text(value)
    items = [each for pair in value.items() for each in pair] if isinstance(value, dict) else list(value)
    texts = [initial_text(item, weights, lines, f"{name}_{position}") for position, item in enumerate(items)]
    lines.append(f"value {name}[] = {{{', '.join(texts) or 'none()'}}};")
    kind = "LIST" if isinstance(value, list) else "DICT" if isinstance(value, dict) else "TUPLE"
    return f"of_items(RL_CONSTANT({kind}), {name}, {len(items)})"
