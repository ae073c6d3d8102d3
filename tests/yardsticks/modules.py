"""Check Rushlight's modules against PyTorch's own samples of modules (`module_db`).

    python -m tests.yardsticks.modules                    # every module: what differs, and a summary
    python -m tests.yardsticks.modules nn.LSTM nn.GRU     # some
    python -m tests.yardsticks.modules --write            # and add those that are clean now to clean_modules.txt

In: PyTorch's ModuleInfos. Out: per module how many checks of each kind passed and failed. Each sample is built in both
libraries from the same arguments and the same seed. Compared are the printed form, the state dict, the initial values,
outputs and gradients in training and evaluation mode, a copy, a pickled copy, and the errors of the error samples. A module
is clean when every sample agrees in all of these.
"""

from __future__ import annotations

import collections
import copy
import dataclasses
import functools
import itertools
import pickle
import re
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch.testing._internal.common_modules import FunctionInput, ModuleErrorEnum, module_db

import rushlight
from tests.yardsticks.command_line import add_to_list, parse_arguments

RTOL, ATOL = 1e-4, 1e-4
GRADIENT_RTOL, GRADIENT_ATOL = 1e-3, 1e-3
CLEAN = Path(__file__).with_name("clean_modules.txt")


class OracleError(Exception):
    """PyTorch itself can't run the sample, so there is nothing to compare with."""


class Mismatch(Exception):
    """A difference between the libraries: the kind of check, and what differed."""

    def __init__(self, kind: str, note: str):
        super().__init__(f"{kind}: {note}")
        self.kind, self.note = kind, note


# From PyTorch's values to those of the library under test


class Translator:
    """Turns PyTorch's tensors, dtypes, functions and modules among arguments into the library's."""

    def __init__(self, library: types.ModuleType):
        self.library = library
        self.leaves: list[tuple[torch.Tensor, Any]] = []
        self._seen: dict[int, Any] = {}

    def value(self, value: Any) -> Any:
        """`value` in terms of the library."""
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, torch.dtype | torch.memory_format | torch.layout):
            return getattr(self.library, str(value).removeprefix("torch."))
        if isinstance(value, torch.device):
            return self.library.device(str(value))
        if isinstance(value, torch.nn.Module):
            return self._module(value)
        if isinstance(value, list | tuple):
            return type(value)(map(self.value, value))
        if isinstance(value, dict):
            return {key: self.value(item) for key, item in value.items()}
        if callable(value) or type(value).__module__.startswith("torch."):
            return self._object(value)
        return value

    def arguments(self, given: FunctionInput) -> tuple[tuple, dict]:
        """The positional and keyword arguments."""
        return tuple(map(self.value, given.args)), {key: self.value(item) for key, item in given.kwargs.items()}

    def _tensor(self, value: torch.Tensor) -> Any:
        # One tensor given twice gathers the gradients of both places.
        if id(value) in self._seen:
            return self._seen[id(value)]
        made = self._seen[id(value)] = self.library.from_numpy(np.array(value.detach().numpy()))
        if value.requires_grad:
            made.requires_grad_(True)
            self.leaves.append((value, made))
        return made

    def _module(self, module: torch.nn.Module) -> Any:
        args, kwargs = module._yardstick_arguments
        made = getattr(self.library.nn, type(module).__name__)(*self.value(args), **self.value(kwargs))
        copy_state(self.library, module, made)
        return made

    def _object(self, value: Any) -> Any:
        if isinstance(value, types.FunctionType) and value.__module__.startswith("torch.testing"):
            scope = {name: self.library if item is torch else item for name, item in value.__globals__.items()}
            return types.FunctionType(value.__code__, scope, value.__name__, value.__defaults__, value.__closure__)
        name = getattr(value, "__name__", None)
        if name is None:
            fields = {field.name: self.value(getattr(value, field.name)) for field in dataclasses.fields(value)}
            return getattr(self.library.nn, type(value).__name__)(**fields)
        for place in (self.library.nn.functional, self.library.nn, self.library):
            if hasattr(place, name):
                return getattr(place, name)
        raise Mismatch("arguments", f"nothing named {name}")


def copy_state(library: types.ModuleType, source: torch.nn.Module, target: Any) -> None:
    """Load the state dict of a PyTorch module into one of the library."""
    state = source.state_dict()
    target.load_state_dict({name: library.from_numpy(np.array(value.numpy())) for name, value in state.items()})


@functools.cache
def record_constructors() -> None:
    """Makes the modules that samples pass to constructors remember their own constructor arguments."""
    original = torch.nn.TransformerEncoderLayer.__init__

    @functools.wraps(original)
    def recording(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        self._yardstick_arguments = (args, kwargs)

    mock.patch.object(torch.nn.TransformerEncoderLayer, "__init__", recording).start()


# Comparisons


def flatten(value: Any) -> list[Any]:
    """The tensors and numbers in nested tuples, lists and dicts."""
    if isinstance(value, list | tuple):
        return [item for part in value for item in flatten(part)]
    if isinstance(value, dict):
        return flatten(list(value.values()))
    return [] if value is None else [value]


def structure(value: Any) -> Any:
    """The nesting of tuples and lists, with the names of all other types."""
    if isinstance(value, list | tuple):
        return [structure(part) for part in value]
    return type(value).__name__.replace("Parameter", "Tensor")


def as_numpy(value: Any) -> np.ndarray:
    """A tensor or number as an array."""
    return np.asarray(value.detach().numpy() if hasattr(value, "detach") else value)


def compare(kind: str, expected: Any, actual: Any, rtol: float = RTOL, atol: float = ATOL) -> None:
    """Mismatch unless both have the same structure, shapes, dtypes and values."""
    if structure(expected) != structure(actual):
        raise Mismatch(kind, f"structure {structure(actual)}, expected {structure(expected)}")
    for theirs, mine in zip(map(as_numpy, flatten(expected)), map(as_numpy, flatten(actual)), strict=True):
        if theirs.shape != mine.shape or theirs.dtype != mine.dtype:
            raise Mismatch(kind, f"{mine.dtype}{list(mine.shape)}, expected {theirs.dtype}{list(theirs.shape)}")
        if not np.allclose(mine, theirs, rtol=rtol, atol=atol, equal_nan=True):
            raise Mismatch(kind, f"values differ by up to {np.abs(mine - theirs).max()}")


def same_text(kind: str, expected: str, actual: str) -> None:
    """Mismatch unless the texts are equal."""
    if expected != actual:
        raise Mismatch(kind, f"{actual!r}, expected {expected!r}")


def compare_gradients(library: types.ModuleType, theirs: Any, mine: Any, leaves: list[tuple]) -> None:
    """Mismatch unless the gradients of all leaves agree, for the same weighting of the outputs."""
    outputs = [tensor for tensor in flatten(theirs) if isinstance(tensor, torch.Tensor)]
    own = [tensor for tensor in flatten(mine) if isinstance(tensor, library.Tensor)]
    wanted = [tensor.requires_grad for tensor in outputs]
    if wanted != [tensor.requires_grad for tensor in own]:
        raise Mismatch("requires_grad", f"{[tensor.requires_grad for tensor in own]}, expected {wanted}")
    if not any(wanted) or not leaves:
        return
    expected = _gradients(torch, outputs, [pair[0] for pair in leaves])
    actual = _gradients(library, own, [pair[1] for pair in leaves])
    for position, (theirs, mine) in enumerate(zip(expected, actual, strict=True)):
        compare(f"gradient {position}", theirs, mine, GRADIENT_RTOL, GRADIENT_ATOL)


def _gradients(library: types.ModuleType, outputs: list, leaves: list) -> list[np.ndarray]:
    total = 0
    for position, output in enumerate(outputs):
        if output.requires_grad:
            weights = np.asarray(np.random.RandomState(position).uniform(0.5, 1.5, tuple(output.shape)))
            total = total + (output * library.from_numpy(weights).to(output.dtype)).sum()
    found = library.autograd.grad(total, leaves, allow_unused=True)
    zeros = [np.zeros_like(as_numpy(leaf)) for leaf in leaves]
    return [zero if grad is None else as_numpy(grad) for grad, zero in zip(found, zeros, strict=True)]


# The checks of one sample


def class_of(library: types.ModuleType, info: Any) -> type:
    """The library's class for a ModuleInfo."""
    return functools.reduce(getattr, info.name.split("."), library)


def _oracle(function: Callable, args: tuple, kwargs: dict) -> Any:
    try:
        return function(*args, **kwargs)
    except Exception as error:
        raise OracleError(str(error)) from error


class Sample:
    """One ModuleInput, built in both libraries."""

    def __init__(self, library: types.ModuleType, info: Any, given: Any):
        self.library, self.info, self.given = library, info, given
        self.translator = Translator(library)
        args, kwargs = self.translator.arguments(given.constructor_input)
        torch.manual_seed(0)
        self.theirs = _oracle(info.module_cls, given.constructor_input.args, given.constructor_input.kwargs)
        library.manual_seed(0)
        self.mine = class_of(library, info)(*args, **kwargs)

    def forward_arguments(self) -> tuple[tuple, tuple, list]:
        """Arguments for both libraries, and the pairs of leaves among them."""
        translator = Translator(self.library)
        theirs = (self.given.forward_input.args, self.given.forward_input.kwargs)
        return theirs, translator.arguments(self.given.forward_input), translator.leaves

    def call(self, mine: Any = None) -> tuple[Any, Any, list]:
        """The outputs of both modules on the sample's arguments, and the leaves among these."""
        (args, kwargs), (own_args, own_kwargs), leaves = self.forward_arguments()
        torch.manual_seed(1)
        expected = _oracle(self.theirs, args, kwargs)
        self.library.manual_seed(1)
        return expected, (mine or self.mine)(*own_args, **own_kwargs), leaves

    def checks(self) -> Iterator[Callable[[], None]]:
        """The checks, in the order in which they must run."""
        yield self.check_repr
        if self.info.is_lazy:
            yield self.call
        yield self.check_state
        for training in (True, False):
            yield functools.partial(self.check_forward, training)
        yield self.check_copies

    def check_repr(self) -> None:
        """The printed forms agree."""
        same_text("repr", repr(self.theirs), repr(self.mine))

    def check_state(self) -> None:
        """State dicts have the same keys and initial values; then the values are copied to be sure."""
        expected, actual = self.theirs.state_dict(), self.mine.state_dict()
        same_text("state_dict", str(list(expected)), str(list(actual)))
        compare("initial values", list(expected.values()), list(actual.values()))
        copy_state(self.library, self.theirs, self.mine)

    def check_forward(self, training: bool) -> None:
        """Outputs, gradients of inputs and parameters, and buffers afterwards agree."""
        self.theirs.train(training)
        self.mine.train(training)
        expected, actual, leaves = self.call()
        mode = "train" if training else "eval"
        compare(f"{mode} output", expected, actual)
        parameters = zip(self.theirs.parameters(), self.mine.parameters(), strict=True)
        leaves += [pair for pair in parameters if pair[0].requires_grad]
        compare_gradients(self.library, expected, actual, leaves)
        compare("buffers", list(self.theirs.buffers()), list(self.mine.buffers()))

    def check_copies(self) -> None:
        """A deep copy and a pickled copy print and compute the same."""
        for kind, made in (("deepcopy", copy.deepcopy(self.mine)), ("pickle", pickle.loads(pickle.dumps(self.mine)))):
            same_text(kind, repr(self.mine), repr(made))
            expected, actual, _ = self.call(made)
            compare(kind, expected, actual)


def check_error(library: types.ModuleType, info: Any, error: Any) -> None:
    """The error sample raises an exception of the given type and wording."""
    try:
        if error.error_on is ModuleErrorEnum.CONSTRUCTION_ERROR:
            args, kwargs = Translator(library).arguments(error.module_error_input.constructor_input)
            class_of(library, info)(*args, **kwargs)
        else:
            args, kwargs = Translator(library).arguments(error.module_error_input.forward_input)
            Sample(library, info, error.module_error_input).mine(*args, **kwargs)
    except error.error_type as raised:
        if not re.search(error.error_regex, str(raised)):
            raise Mismatch("error message", f"{raised}, expected {error.error_regex}") from raised
        return
    raise Mismatch("error", f"none raised, expected {error.error_type.__name__}: {error.error_regex}")


# One module, all modules


def check_module(
    library: types.ModuleType, info: Any, most: int | None = None
) -> tuple[collections.Counter, collections.Counter]:
    """The numbers of clean and failed samples, and notes on the failures; `most` bounds the samples in each mode."""
    record_constructors()
    results, notes = _run_samples(library, info, torch.float32, most)
    if set(results) == {"oracle error"}:
        results, notes = _run_samples(library, info, torch.float64, most)
    if info.module_error_inputs_func is not None:
        errors = info.module_error_inputs_func(info, "cpu", torch.float32, requires_grad=False, training=False)
        for error in errors:
            _count(functools.partial(check_error, library, info, error), results, notes)
    return results, notes


def _run_samples(
    library: types.ModuleType, info: Any, dtype: torch.dtype, most: int | None
) -> tuple[collections.Counter, collections.Counter]:
    results, notes = collections.Counter(), collections.Counter()
    for training in (True, False):
        torch.manual_seed(0)
        samples = info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=True, training=training)
        for given in itertools.islice(samples, most):
            _count(functools.partial(_run_sample, library, info, given), results, notes)
    return results, notes


def _run_sample(library: types.ModuleType, info: Any, given: Any) -> None:
    for check in Sample(library, info, given).checks():
        check()


def _count(run: Callable[[], None], results: collections.Counter, notes: collections.Counter) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run()
        results["ok"] += 1
    except OracleError:
        results["oracle error"] += 1
    except Mismatch as mismatch:
        results[mismatch.kind] += 1
        notes[str(mismatch)[:300]] += 1
    except Exception as error:  # A failure of the library under test is a result, too.
        results["error"] += 1
        notes[f"{type(error).__name__}: {error}"[:300]] += 1


def is_clean(results: collections.Counter) -> bool:
    """Whether there were samples and all agreed."""
    return results["ok"] > 0 and set(results) <= {"ok", "oracle error"}


def main() -> None:
    """Check the modules named on the command line, or all; print what differs and how many are clean."""
    options = parse_arguments(__doc__, CLEAN)
    torch.set_num_threads(1)
    chosen = [info for info in module_db if not options.names or info.name in options.names]
    clean = []
    for info in chosen:
        results, notes = check_module(rushlight, info)
        if is_clean(results):
            clean.append(info.name)
        else:
            print(f"{info.name}: {dict(results)}", *list(notes)[:3], sep="\n    ")
    print(f"{len(clean)} of {len(chosen)} modules are clean")
    if options.write:
        add_to_list(CLEAN, clean)


if __name__ == "__main__":
    main()
