"""Operators for control flow on values in compiled graphs: `higher_order::cond` and `higher_order::while_loop`.

In: the number of a program, whose functions were captured as graphs, and tensors. Out: fresh contiguous tensors. What compiles
a graph treats a call as one operator. The functions of a program are compiled when they first run.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence

from rushlight.autograd import enable_grad
from rushlight.autograd import grad as gradients_of
from rushlight.core.dispatch_key import AUTOGRAD_BITS
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.func.control_flow import is_true
from rushlight.fx.graph_module import GraphModule
from rushlight.library.custom_ops import custom_op
from rushlight.ops.registry import aten

Build = Callable[[GraphModule, list[Tensor]], Callable]
_programs: weakref.WeakValueDictionary[int, Program] = weakref.WeakValueDictionary()
_numbers = itertools.count()


class Program:
    """The functions of one call of control flow: graphs over the tensors at some `places` of those that the call is given.

    `build` compiles a graph for tensors like the given ones; None runs graphs as they are.
    """

    def __init__(self, functions: Sequence[tuple[Callable, tuple[int, ...]]], build: Build | None) -> None:
        self.functions = functions
        self.build = build
        self.number = next(_numbers)
        self._built: dict[int, Callable] = {}
        self._backward: Program | None = None
        _programs[self.number] = self

    def run(self, index: int, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
        """Return the results of a function."""
        function, places = self.functions[index]
        given = [tensors[place] for place in places]
        if index not in self._built:
            is_graph = self.build is not None and isinstance(function, GraphModule)
            self._built[index] = self.build(function, given) if is_graph else function
        return self._built[index](*given)

    def plain(self, index: int, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
        """Run the graph without compiling it."""
        function, places = self.functions[index]
        return function(*[tensors[place] for place in places])

    def backward(self) -> Program:
        """Return the program that takes the same tensors and gradients of the results, and gives gradients of the tensors."""
        if self._backward is None:
            self._backward = Program([(_Backward(self, index), ()) for index in range(len(self.functions))], None)
        return self._backward


class _Backward:
    """The gradients of a function of a program, which runs once more for them."""

    def __init__(self, program: Program, index: int) -> None:
        self.program = weakref.proxy(program)  # weak, because the program holds this object
        self.index = index

    def __call__(self, tensors: Sequence[Tensor], grads: Sequence[Tensor]) -> list[Tensor]:
        exclude, state.exclude = state.exclude, state.exclude & ~AUTOGRAD_BITS
        try:
            with enable_grad():
                points = [tensor.detach().requires_grad_() if _is_differentiable(tensor) else tensor for tensor in tensors]
                results = self.program.plain(self.index, points)
                pairs = [(one, grad) for one, grad in zip(results, grads, strict=True) if one.requires_grad]
                wanted = [point for point in points if point.requires_grad]
                outputs, vectors = [one for one, _ in pairs], [grad for _, grad in pairs]
                found = iter(gradients_of(outputs, wanted, vectors, allow_unused=True) if pairs else [None] * len(wanted))
        finally:
            state.exclude = exclude
        slopes = [next(found) if point.requires_grad else None for point in points]
        return [aten("zeros_like")(one) if slope is None else slope for one, slope in zip(tensors, slopes, strict=True)]


def _is_differentiable(tensor: Tensor) -> bool:
    return tensor.dtype.is_floating_point or tensor.dtype.is_complex


def _ensure_own_memory(results: Sequence[Tensor], given: Sequence[Tensor]) -> list[Tensor]:
    """Return the results, each in memory of its own."""
    seen, made = {id(tensor._impl.storage) for tensor in given}, []
    for result in results:
        result = result.detach()
        if id(result._impl.storage) in seen or not result.is_contiguous():
            result = aten("clone")(result.contiguous())
        seen.add(id(result._impl.storage))
        made.append(result)
    return made


def _make_fakes(results: Sequence[Tensor]) -> list[Tensor]:
    return [aten("new_empty")(one, list(one.shape)) for one in results]


@custom_op("higher_order::cond", mutates_args=(), schema="(int program, Tensor pred, Tensor[] operands) -> Tensor[]")
def cond_operator(program: int, pred: Tensor, operands: list[Tensor]) -> list[Tensor]:
    """Run the program's first function where `pred` is true, else its second."""
    return _ensure_own_memory(_programs[program].run(0 if pred else 1, operands), operands)


@cond_operator.register_fake
def _(program: int, pred: Tensor, operands: list[Tensor]) -> list[Tensor]:
    return _make_fakes(_programs[program].plain(0, operands))


@custom_op(
    "higher_order::cond_backward", mutates_args=(),
    schema="(int program, Tensor pred, Tensor[] operands, Tensor[] grads) -> Tensor[]",
)  # fmt: skip
def _cond_backward(program: int, pred: Tensor, operands: list[Tensor], grads: list[Tensor]) -> list[Tensor]:
    function, _ = _programs[program].backward().functions[0 if pred else 1]
    return _ensure_own_memory(function(operands, grads), [*operands, *grads])


@_cond_backward.register_fake
def _(program: int, pred: Tensor, operands: list[Tensor], grads: list[Tensor]) -> list[Tensor]:
    return _make_fakes(operands)


def _keep(ctx, inputs: tuple, output: list[Tensor]) -> None:
    program, pred, operands = inputs
    ctx.program = program
    ctx.save_for_backward(pred, *operands)


def _differentiate(ctx, grads: list[Tensor]) -> tuple:
    pred, *operands = ctx.saved_tensors
    return None, None, _cond_backward(ctx.program, pred, operands, list(grads))


cond_operator.register_autograd(_differentiate, setup_context=_keep)


@custom_op("higher_order::while_loop", mutates_args=(), schema="(int program, Tensor[] carried, Tensor[] others) -> Tensor[]")
def loop_operator(program: int, carried: list[Tensor], others: list[Tensor]) -> list[Tensor]:
    """Run the program's second function on its own results as long as the first one's is true."""
    functions, values = _programs[program], list(carried)
    while is_true(functions.run(0, [*values, *others])[0]):
        values = list(functions.run(1, [*values, *others]))
    return _ensure_own_memory(values, [*carried, *others])


@loop_operator.register_fake
def _(program: int, carried: list[Tensor], others: list[Tensor]) -> list[Tensor]:
    return _make_fakes(carried)


class CapturedCondition:
    """A call of `cond` in a graph."""

    __name__ = __qualname__ = "cond"

    def __init__(self, program: Program) -> None:
        self.program = program

    def __call__(self, pred: Tensor, operands: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Return the results of the branch that `pred` chooses."""
        return tuple(cond_operator(self.program.number, pred, list(operands)))


class CapturedLoop:
    """A call of `while_loop` in a graph."""

    __name__ = __qualname__ = "while_loop"

    def __init__(self, program: Program) -> None:
        self.program = program

    def __call__(self, carried: tuple[Tensor, ...], others: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Run the loop, and return the carried tensors at its end."""
        return tuple(loop_operator(self.program.number, list(carried), list(others)))
