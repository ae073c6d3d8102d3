"""Which optimizers train as torch's do: every configuration of torch's optimizer database, step by step.

    python -m tests.yardsticks.optimizers                # all: the clean ones, and what differs in the others
    python -m tests.yardsticks.optimizers Adam SGD       # some
    python -m tests.yardsticks.optimizers --write        # and add those that are clean now to clean_optimizers.txt

An optimizer is clean when, for each configuration, dtype and way of computing that torch has on the CPU, ten steps give torch's
losses, parameters and state dicts; when its state moves to torch and back in the middle of the training; when its text is
torch's; and when every wrong use in the database raises what torch raises. Needs torch 2.13 and expecttest.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from copy import copy, deepcopy
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from torch.testing._internal.common_optimizers import OptimizerErrorEnum, OptimizerInfo, optim_db

import rushlight
from tests.yardsticks.command_line import add_to_list, parse_arguments

CLEAN = Path(__file__).with_name("clean_optimizers.txt")
STEPS = 10
# One step of LBFGS is up to 20 iterations, and near the minimum they follow the noise.
STEPS_OF = {"LBFGS": 2}
# Muon computes in bfloat16, and ASGD keeps its step sizes in float32, where sums and products depend on their order.
TOLERANCE = {"Muon": 2e-3, "ASGD": 1e-4, "LBFGS": 1e-6}


def optimizers() -> dict[str, OptimizerInfo]:
    """The optimizers of torch's database by name."""
    return {info.optim_cls.__name__: info for info in optim_db}


def libraries() -> tuple:
    """The package under test and the oracle."""
    return rushlight, torch


def to(library, value):
    """A value with torch's tensors turned into the library's."""
    if isinstance(value, torch.Tensor) and library is rushlight:
        if value.layout != torch.strided:
            indices, values = (to(library, part.detach()) for part in (value.coalesce().indices(), value.coalesce().values()))
            return rushlight.sparse_coo_tensor(indices, values, tuple(value.shape))
        made = rushlight.from_numpy(value.detach().numpy().copy())
        return rushlight.nn.Parameter(made) if isinstance(value, torch.nn.Parameter) else made
    if isinstance(value, dict):
        return {key: to(library, part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(to(library, part) for part in value)
    return value


def numbers(value):
    """A state dict, of either library, with tensors turned into arrays."""
    if isinstance(value, rushlight.Tensor | torch.Tensor):
        return value.detach().numpy().copy()
    if isinstance(value, dict):
        return {key: numbers(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [numbers(part) for part in value]
    return value


def difference(ours, theirs, tolerance: float, path: str = "") -> str:
    """Where two values from `numbers` differ; "" where they agree."""
    if isinstance(theirs, dict):
        if not isinstance(ours, dict) or list(ours) != list(theirs):
            return f"{path}: keys {list(ours)} and not {list(theirs)}"
        pairs = [(ours[key], theirs[key], f"{path}.{key}") for key in theirs]
    elif isinstance(theirs, list):
        if not isinstance(ours, list) or len(ours) != len(theirs):
            return f"{path}: {ours} and not {theirs}"
        pairs = [(a, b, f"{path}[{n}]") for n, (a, b) in enumerate(zip(ours, theirs, strict=True))]
    else:
        return _leaf_difference(ours, theirs, tolerance, path)
    return next((found for a, b, where in pairs if (found := difference(a, b, tolerance, where))), "")


def _leaf_difference(ours, theirs, tolerance: float, path: str) -> str:
    if isinstance(theirs, bool | str | type(None)):
        return "" if ours == theirs else f"{path}: {ours!r} and not {theirs!r}"
    a, b = np.asarray(ours), np.asarray(theirs)
    if isinstance(theirs, np.ndarray) and b.ndim and a.dtype != b.dtype:
        return f"{path}: {a.dtype} and not {b.dtype}"
    if a.shape != b.shape or not np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True):
        return f"{path}: {a} and not {b}"
    return ""


class Training:
    """A small problem with parameters of several shapes, in one library."""

    def __init__(self, library, info: OptimizerInfo, kwargs: dict, dtype: str):
        self.library = library
        self.info = info
        matrices = info.optim_cls is torch.optim.Muon
        shapes = [(3, 4), (5, 2)] if matrices else [(3, 4), (5,), (), (2, 1, 3)]
        source = np.random.default_rng(0)
        self.arrays = [_random(source, shape, dtype) for shape in shapes]
        self.targets = [library.from_numpy(_random(source, shape, dtype)) for shape in shapes]
        make = rushlight.nn.Parameter if library is rushlight else torch.nn.Parameter
        self.parameters = [make(library.from_numpy(array.copy())) for array in self.arrays]
        kwargs = {name: to(library, value) for name, value in kwargs.items()}
        self.trained = self.parameters
        if kwargs.get("differentiable"):
            self.trained = [parameter.clone() for parameter in self.parameters]
            for parameter in self.trained:
                parameter.retain_grad()
        groups: list = list(self.trained)
        if info.supports_param_groups and not matrices:
            groups = [{"params": self.trained[:2]}, {"params": self.trained[2:], "lr": 0.003}]
        self.optimizer = getattr(library.optim, info.optim_cls.__name__)(groups, **kwargs)

    def loss(self):
        """A bowl with a wave in it; the imaginary parts of complex parameters count too."""
        total = 0.0
        for parameter, target in zip(self.trained, self.targets, strict=True):
            distance = (parameter - target).abs()
            total = total + (distance * distance).sum() + (distance * 3).sin().sum() * 0.1
        return total

    def closure(self):
        """The loss, with gradients; sparse ones where the optimizer takes no others."""
        self.optimizer.zero_grad()
        loss = self.loss()
        loss.backward()
        if self.info.only_supports_sparse_grads:
            for parameter in self.trained:
                parameter.grad = to_sparse(self.library, parameter.grad)
        return loss

    def step(self) -> float:
        """Runs one step; returns the loss before it."""
        if self.info.step_requires_closure:
            return float(self.optimizer.step(self.closure).detach())
        loss = self.closure()
        self.optimizer.step()
        return float(loss.detach())

    def recorded_step(self) -> list:
        """The gradients of the loss after a step through that step."""
        for parameter, target in zip(self.trained, self.targets, strict=True):
            parameter.grad = (parameter - target) * 0.5
        self.optimizer.step()
        return list(self.library.autograd.grad(self.loss(), self.parameters))

    def outcome(self, losses: list[float]) -> dict:
        """The values that are compared."""
        return {
            "losses": losses,
            "parameters": [numbers(parameter) for parameter in self.trained],
            "state": numbers(self.optimizer.state_dict()),
        }


def _random(source: np.random.Generator, shape: tuple, dtype: str) -> np.ndarray:
    made = source.standard_normal(shape)
    if dtype.startswith("complex"):
        made = made + 1j * source.standard_normal(shape)
    return np.asarray(made, dtype)


def to_sparse(library, grad):
    """A sparse gradient with only the elements at even positions of the first dimension."""
    rows = library.arange(0, max(grad.numel(), 1), 2)
    flat = grad.reshape(-1)
    indices = np.stack(np.unravel_index(rows.numpy(), tuple(grad.shape))) if grad.dim() else np.zeros((0, 1), np.int64)
    return library.sparse_coo_tensor(library.from_numpy(indices), flat[rows], tuple(grad.shape))


def check_sparse(info: OptimizerInfo) -> Iterator[str]:
    """Checks sparse gradients for an optimizer that takes both kinds."""
    if info.supports_sparse:
        both = copy(info)
        both.only_supports_sparse_grads = True
        found = compare(both, {"lr": 0.1}, "float32")
        if found:
            yield f"sparse: {found}"


def cases(info: OptimizerInfo) -> Iterator[tuple[str, dict, str]]:
    """Label, options and dtype of every training to compare."""
    name = info.optim_cls.__name__
    # LBFGS decides by comparing numbers: in float32 the two libraries may decide differently.
    dtypes, complexes = (["float64"], ["complex128"]) if name == "LBFGS" else (["float32", "float64"], ["complex64"])
    ways: list[dict] = [{}]
    ways += [{"foreach": True}] if "foreach" in info.supported_impls else []
    ways += [{"fused": True}] if "cpu" in (info.supports_fused_on or ()) else []
    ways += [{"differentiable": True}] if "differentiable" in info.supported_impls else []
    for config in info.optim_inputs_func(device="cpu"):
        for way in ways:
            if "foreach" in way and isinstance(config.kwargs.get("lr"), torch.Tensor) and name.startswith("Adam"):
                continue
            for dtype in dtypes + (complexes if info.supports_complex and not way else []):
                yield f"{config.desc} {way or ''} {dtype}", {**config.kwargs, **way}, dtype


def compare(info: OptimizerInfo, kwargs: dict, dtype: str) -> str:
    """The difference in a training whose state moves to the other library half-way; "" if there is none."""
    name = info.optim_cls.__name__
    tolerance = TOLERANCE.get(name, 1e-4 if dtype in ("float32", "complex64") else 1e-9)
    if kwargs.get("differentiable"):
        return compare_recorded(info, kwargs, dtype)
    ours, theirs = (Training(library, info, deepcopy(kwargs), dtype) for library in libraries())
    if repr(ours.optimizer) != repr(theirs.optimizer):
        return f"text {ours.optimizer!r} and not {theirs.optimizer!r}"
    half = STEPS_OF.get(name, STEPS) // 2
    outcomes = [training.outcome([training.step() for _ in range(half)]) for training in (ours, theirs)]
    found = difference(*outcomes, tolerance)
    if found:
        return found
    mine, other = ours.optimizer.state_dict(), theirs.optimizer.state_dict()
    ours.optimizer.load_state_dict(to(rushlight, other))
    theirs.optimizer.load_state_dict(to_torch(mine))
    outcomes = [training.outcome([training.step() for _ in range(half)]) for training in (ours, theirs)]
    return difference(*outcomes, tolerance)


def compare_recorded(info: OptimizerInfo, kwargs: dict, dtype: str) -> str:
    """The difference in one step that is itself differentiated; torch keeps counts in float32 there."""
    outcomes = []
    for library in libraries():
        training = Training(library, info, deepcopy(kwargs), dtype)
        gradients = training.recorded_step()
        outcomes.append({"gradients": numbers(gradients), **training.outcome([])})
    return difference(*outcomes, 1e-4)


def to_torch(value):
    """A value with the package's tensors turned into torch's."""
    if isinstance(value, rushlight.Tensor):
        return torch.from_numpy(value.detach().numpy().copy())
    if isinstance(value, dict):
        return {key: to_torch(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(to_torch(part) for part in value)
    return value


def check_errors(info: OptimizerInfo) -> Iterator[str]:
    """The wrong uses that do not raise, or warn, as in torch."""
    kind = getattr(rushlight.optim, info.optim_cls.__name__)
    for case in info.optim_error_inputs_func(device="cpu", dtype=torch.float32):
        given = case.optimizer_error_input
        same: dict[int, object] = {}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                params = _parameters(given.params, same) if given.params is not None else [_with_gradient(torch.ones(2, 2))]
                optimizer = kind(params, **to(rushlight, given.kwargs))
                if case.error_on is OptimizerErrorEnum.STEP_ERROR:
                    optimizer.step()
            yield f"{given.desc}: no error"
        except Exception as error:
            if not isinstance(error, case.error_type) or not re.search(case.error_regex, str(error)):
                yield f"{given.desc}: {type(error).__name__}: {error}"


def _parameters(value, same: dict[int, object]):
    """The parameters of a wrong use: one tensor of torch always becomes the same tensor here."""
    if isinstance(value, torch.Tensor):
        return same.setdefault(id(value), _with_gradient(value))
    if isinstance(value, dict):
        return {key: _parameters(part, same) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_parameters(part, same) for part in value)
    return value


def _with_gradient(value: torch.Tensor):
    made = to(rushlight, value)
    if value.grad is not None:
        made.grad = to(rushlight, value.grad)
    return made


def check(info: OptimizerInfo) -> list[str]:
    """All differences from torch; empty for a clean optimizer."""
    if not hasattr(rushlight.optim, info.optim_cls.__name__):
        return ["missing"]
    found = []
    for label, kwargs, dtype in cases(info):
        try:
            result = compare(info, kwargs, dtype)
        except Exception as error:
            result = f"{type(error).__name__}: {error}"
        found += [f"{label}: {result}"] if result else []
    return [*found, *check_sparse(info), *check_errors(info)]


def main() -> None:
    """Print the report."""
    arguments = parse_arguments(__doc__, CLEAN)
    known = optimizers()
    clean = []
    for name in arguments.names or known:
        found = check(known[name])
        clean += [] if found else [name]
        for line in islice(found, 6):
            print(f"{name}: {line[:300]}")
    print(f"clean: {len(clean)} of {len(arguments.names or known)}: {' '.join(clean)}")
    if arguments.write:
        add_to_list(CLEAN, clean)


if __name__ == "__main__":
    main()
