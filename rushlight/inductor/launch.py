"""Native launches of compiled graphs: one step in C from tensors to tensors.

In: a plan with known sizes (`KnownSizes`) or open ones (`open_launch.py`). Out: a `GraphLaunch`, which checks inputs, allocates
memory, runs the program and makes the results. Inputs that the graph was not compiled for go to a Python callable. Its
arguments print. Stage: inductor, calling.
    input 0: torch.float32[2, 8] by [8, 1]
    memory 0: 64 bytes
    result 0: torch.float32[8, 2] by [1, 8] at 0 of memory 0
    result 1: [8] by [1] at 8 of input 0
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from rushlight._C import GraphLaunch
from rushlight.core.algebra import Expr
from rushlight.core.dispatch_key import BATCHED_BIT, SPECIAL_BITS
from rushlight.core.dtype import dtype
from rushlight.core.tensor import Tensor
from rushlight.core.tensor_impl import TensorImpl
from rushlight.inductor.build import Library
from rushlight.inductor.plan import OutputView, Plan
from rushlight.ops.registry import aten

if TYPE_CHECKING:
    from rushlight.inductor.sizes import Size

# Kinds of results, numbered as in csrc/graph_description.h.
MADE, INPUT, OBJECT, NUMBER, ALIAS = range(5)

Code = int | tuple[int, ...]  # a number, or postfix code that computes it


class NoNativeForm(Exception):
    """Native code cannot compute this size."""


class Sizes(Protocol):
    """The sizes of a GraphLaunch.

    `positions` maps the plan's inputs to their positions among all inputs. `inputs`, `symbols`, `work` and `arena_bytes_for`
    are GraphLaunch's arguments of these names.
    """

    positions: dict[str, int]
    inputs: tuple
    symbols: tuple | None
    work: Code
    arena_bytes_for: int | None

    def code(self, size: Size) -> Code:
        """Return a size in the form for native code; NoNativeForm if there is none."""

    def lines(self) -> list[str]:
        """Return the inputs, and the numbers read from them, as text."""


class KnownSizes:
    """The sizes of a plan without symbols: plain numbers."""

    symbols = arena_bytes_for = None

    def __init__(self, plan: Plan):
        self.positions = {given.name: position for position, given in enumerate(plan.inputs)}
        self.inputs = tuple((given.dtype, given.size, given.stride) for given in plan.inputs)
        self.work = int(plan.is_long)

    def code(self, size: int) -> int:
        """Return the size."""
        return size

    def lines(self) -> list[str]:
        """Return the inputs."""
        return [f"input {position}: {input_text(*given)}" for position, given in enumerate(self.inputs)]


def make_launch(
    plan: Plan, sizes: Sizes, library: Library | None, constants: Mapping[str, Tensor], general: Callable[..., tuple],
    reference: Callable[..., tuple], written: Sequence[int] = (),
) -> GraphLaunch | None:  # fmt: skip
    """Return the native callable for a plan; None if a size has no native form. Without a library, the graph only makes views.

    `general` handles inputs that the graph was not compiled for, `reference` an index out of range. `written` are the inputs
    that the graph mutates.
    """
    try:
        results = tuple(_result(view, plan, sizes, constants) for view in plan.views)
        made = tuple(map(sizes.code, plan.outputs.values()))
    except NoNativeForm:
        return None
    entry, pointers, arena_bytes = (library.entry, plan.kept, library.arena_bytes) if library else (0, 0, 0)
    return GraphLaunch(
        entry, sizes.inputs, made, results, general, reference, pointer_count=pointers, arena_bytes=arena_bytes,
        arena_bytes_for=sizes.arena_bytes_for, work=sizes.work, symbols=sizes.symbols, written=tuple(written),
    )  # fmt: skip


def _result(view: OutputView, plan: Plan, sizes: Sizes, constants: Mapping[str, Tensor]) -> tuple:
    """Return a result in the form that GraphLaunch takes."""
    if not view.buffer:
        return (NUMBER, sizes.code(view.value)) if isinstance(view.value, Expr) else (OBJECT, view.value)
    layout = tuple(map(sizes.code, view.size)), tuple(map(sizes.code, view.stride)), sizes.code(view.offset)
    if view.buffer in plan.outputs:
        return MADE, list(plan.outputs).index(view.buffer), *layout, plan.dtypes[view.buffer]
    source = sizes.positions.get(view.buffer)
    if not view.is_whole:
        return ALIAS, aten("as_strided"), constants[view.buffer] if source is None else source, *layout
    return (OBJECT, constants[view.buffer]) if source is None else (INPUT, source)


def launch_text(plan: Plan, sizes: Sizes) -> str:
    """Return the arguments of a GraphLaunch as text."""
    made = [f"memory {number}: {nbytes} bytes" for number, nbytes in enumerate(plan.outputs.values())]
    results = [f"result {number}: {_result_text(view, plan, sizes)}" for number, view in enumerate(plan.views)]
    return "\n".join([*sizes.lines(), *made, *results]) + "\n"


def _result_text(view: OutputView, plan: Plan, sizes: Sizes) -> str:
    if not view.buffer:
        return str(view.value)
    layout = f"{numbers_text(view.size)} by {numbers_text(view.stride)} at {view.offset} of"
    if view.buffer in plan.outputs:
        return f"{plan.dtypes[view.buffer]}{layout} memory {list(plan.outputs).index(view.buffer)}"
    position = sizes.positions.get(view.buffer)
    source = f"constant {view.buffer}" if position is None else f"input {position}"
    return source if view.is_whole else f"{layout} {source}"


def numbers_text(numbers: Sequence[Size]) -> str:
    """Return sizes or strides as a list."""
    return f"[{', '.join(map(str, numbers))}]"


def input_text(kind: dtype, size: Sequence[Size], stride: Sequence[Size]) -> str:
    """Return a tensor input as text."""
    return f"{kind}{numbers_text(size)} by {numbers_text(stride)}"


def reach(size: tuple[int, ...], stride: tuple[int, ...], kind: dtype) -> int:
    """Return the number of bytes from a tensor's first element to the end of its last."""
    if 0 in size:
        return 0
    return (sum((count - 1) * step for count, step in zip(size, stride, strict=True)) + 1) * kind.itemsize


def bytes_needed(impl: TensorImpl) -> int:
    """Return the number of bytes that a tensor's storage must have."""
    return impl.storage_offset * impl.dtype.itemsize + reach(impl.sizes, impl.strides, impl.dtype)


def has_no_data(impl: TensorImpl) -> bool:
    """Return whether a tensor has no memory that native code could read."""
    return bool(impl.key_set & (SPECIAL_BITS | BATCHED_BIT)) or not impl.storage.data_ptr and impl.storage.buffer is None
