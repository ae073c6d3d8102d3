"""Optimizer steps on a GPU: one compiled graph updates all parameters of a group.

In: the rows of a native step (parameter, gradient, states), its options, and the counts of steps. Out: updated tensors. A graph
is compiled once for the sizes and dtypes of the rows and for the options that choose its form, and kept. Numbers that change
from step to step are 0-dim tensors. """

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from rushlight.autograd.grad_mode import set_grad_enabled
from rushlight.compiler import passes
from rushlight.compiler.logs import StageLog
from rushlight.compiler.settings import Settings
from rushlight.core.tensor import Tensor
from rushlight.cuda import runtime, tensors
from rushlight.fx.proxy_tensor import capture
from rushlight.inductor.codegen.triton.templates import Precision
from rushlight.inductor.triton.device import DeviceLauncher
from rushlight.inductor.triton.pieces import TritonCompiler
from rushlight.ops import aten
from rushlight.optim.device_steps import steps

_graphs: dict[tuple, Callable[..., tuple] | None] = {}
runtime.on_forget(_graphs.clear)
Rows = Sequence[Sequence[Tensor | None]]


def _adam(rows: Rows, numbers: Sequence[Tensor], form: tuple) -> None:
    """Update by Adam. `numbers` are lr * weight_decay, 1 - beta1, beta2, 1 - beta2, the step size, the root of the second
    moment's correction, eps, and weight_decay."""
    decays, is_decoupled, maximizes = form
    shrink, mean_rate, keep, square_rate, size, correction, eps, decay = numbers
    for parameter, gradient, mean, square, largest in rows:
        gradient = -gradient if maximizes else gradient
        if decays and is_decoupled:
            parameter.mul_(1 - shrink)
        elif decays:
            gradient = gradient + parameter * decay
        mean.add_((gradient - mean) * mean_rate)
        square.mul_(keep).add_(gradient * gradient * square_rate)
        second = square if largest is None else largest.copy_(aten.maximum(largest, square))
        parameter.add_(mean / (second.sqrt() / correction + eps) * size)


def _numbers_of_adam(options: tuple, step: float) -> tuple[tuple, tuple]:
    lr, beta1, beta2, eps, decay, is_decoupled, maximizes = options
    size, correction = -lr / (1 - beta1**step), math.sqrt(1 - beta2**step)
    numbers = (lr * decay, 1 - beta1, beta2, 1 - beta2, size, correction, eps, decay)
    return numbers, (bool(decay), bool(is_decoupled), bool(maximizes))


def _sgd(rows: Rows, numbers: Sequence[Tensor], form: tuple) -> None:
    """Update by SGD. `numbers` are the learning rate, momentum, 1 - dampening and weight_decay."""
    decays, has_momentum, is_nesterov, maximizes, is_first = form
    lr, momentum, rate, decay = numbers
    for parameter, gradient, buffer in rows:
        gradient = -gradient if maximizes else gradient
        if decays:
            gradient = gradient + parameter * decay
        if has_momentum:
            buffer.copy_(gradient) if is_first else buffer.mul_(momentum).add_(gradient * rate)
            gradient = gradient + buffer * momentum if is_nesterov else buffer
        parameter.sub_(gradient * lr)


_FUNCTIONS = {"adam": _adam, "sgd": _sgd}


def update(kernel: str, rows: Rows, numbers: Sequence[float], form: tuple) -> bool:
    """Update all rows, which are on one GPU; False if they cannot be updated together."""
    given = [tensor for row in rows for tensor in row if tensor is not None]
    index = given[0]._impl.device.index
    shapes = tuple([None if t is None else (t._impl.sizes, t._impl.strides, t._impl.dtype) for row in rows for t in row])
    key = (kernel, form, index, len(rows), shapes)
    if key not in _graphs:
        _graphs[key] = _compile(kernel, rows, len(numbers), form, index)
    run = _graphs[key]
    if run is None:
        return False
    with runtime.on_device(index):
        run(*given, *[tensors.number(float(value), index) for value in numbers])
    return True


def _compile(kernel: str, rows: Rows, count: int, form: tuple, index: int) -> Callable[..., tuple] | None:
    given = [tensor for row in rows for tensor in row if tensor is not None]
    if any(not tensor.is_non_overlapping_and_dense() or tensor.is_complex() for tensor in given):
        return None
    patterns = [[tensor is not None for tensor in row] for row in rows]

    def step(*values: Tensor) -> tuple:
        left = iter(values[: len(given)])
        again = [[next(left) if is_there else None for is_there in pattern] for pattern in patterns]
        _FUNCTIONS[kernel](again, values[len(given) :], form)
        return ()

    examples = [tensor.detach() for tensor in given] + [tensors.number(0.5 + place, index) for place in range(count)]
    with set_grad_enabled(False):
        module = capture(step, tuple(examples)).module
        passes.run(passes.for_fusion(False), module, StageLog(Settings(), f"the step of {kernel}"))
        launcher = partial(DeviceLauncher, index=index)
        run, made = TritonCompiler(launcher, Precision("ieee")).compile(module)
    return None if made.eager else run


def step_adam(rows: Rows, options: tuple) -> bool:
    """Update rows (parameter, gradient, mean, square, largest, count of steps) by Adam; rows of equal counts go together."""
    by_count: dict[float, list] = {}
    for *row, count in rows:
        by_count.setdefault(count.item() + 1, []).append(row)
    for step, together in by_count.items():
        if not update("adam", together, *_numbers_of_adam(options, step)):
            return False
    for *_, count in rows:
        count.add_(1)
    return True


def step_sgd(rows: Rows, options: tuple) -> bool:
    """Update rows (parameter, gradient, momentum buffer, whether the buffer has a value) by SGD."""
    lr, momentum, dampening, decay, is_nesterov, maximizes = options
    for is_first in (True, False):
        together = [row[:3] for row in rows if (row[2] is not None and not row[3]) is is_first]
        form = (bool(decay), momentum != 0, bool(is_nesterov), bool(maximizes), is_first)
        if together and not update("sgd", together, (lr, momentum, 1 - dampening, decay), form):
            return False
    return True


steps["adam"], steps["sgd"] = step_adam, step_sgd
