"""Random arguments, good and bad, for every aten operator: `python -m tests.fuzz_arguments --trials 200`.

Nothing may crash, hang or let an error of the inner workings through ("tuple index out of range"). Each batch of operators runs
in a process of its own, so that a crash is a line of the report. Every trial has its own seed: a line is replayed, with its
arguments and traceback, by `python -m tests.fuzz_arguments --only aten::add.Tensor --trial 17`. The exit status is 1 if there
was a finding.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator

import numpy as np

import rushlight
from rushlight.ops.dispatcher import OpOverload, all_operators
from rushlight.ops.schema import Argument

FLOATS = (rushlight.float32, rushlight.float64, rushlight.float16, rushlight.bfloat16)
DTYPES = (*FLOATS, rushlight.complex64, rushlight.int64, rushlight.int32, rushlight.uint8, rushlight.bool)
HUGE = 1 << 40
# Random values for each kind of argument; tensors and lists are made from these.
CHOICES = {
    "int": (-7, -3, -2, -1, 0, 0, 1, 1, 2, 3, 5, HUGE),
    "float": (-1.0, 0.0, 0.5, 1.0, 2.5, float("nan"), float("inf")),
    "Scalar": (-2, 0, 1, 2, 0.5, float("inf"), True, 1j),
    "bool": (False, True),
    "str": ("none", "tanh", "mean", "sum", "floor", "trunc", "reflect", "ij", "bilinear", "x", ""),
    "ScalarType": DTYPES,
    "MemoryFormat": (rushlight.contiguous_format, rushlight.channels_last, rushlight.preserve_format),
    "Layout": (rushlight.strided,),
    "Device": ("cpu", "meta"),
}
LIST_CHOICES = {"int": (-5, -2, -1, 0, 1, 1, 2, 3, 4, 100), "bool": (False, True), "str": CHOICES["str"]}
SIZES = (0, 1, 1, 2, 3, 4, 5, 7)
DIMENSIONS = (0, 1, 1, 2, 2, 3, 4, 5)

# Exception types that a user may see. All other types, and these texts, are internal errors.
EXPECTED_ERRORS = (RuntimeError, TypeError, ValueError, IndexError, MemoryError)
INTERNAL_TEXT = re.compile(
    r"operands could not be broadcast|zip\(\) argument|tuple index|list index|values to unpack|cannot unpack"
    r"|object is not|object cannot be|object has no|unsupported operand|cannot reshape array|ufunc|cannot convert float"
    r"|is out of bounds for array|axes don't match|array with size|np\.|NoneType|unhashable|pop from"
)
HANG_SECONDS = 20
MEMORY_LIMIT = 12 << 30


def operators() -> list[OpOverload]:
    """All aten operators, by name."""
    return sorted((op for op in all_operators() if op.namespace == "aten"), key=lambda op: op.name)


def random_tensor(choose: random.Random, shape: tuple[int, ...]) -> rushlight.Tensor:
    """A tensor, often of `shape` and of float32; also transposed, strided, expanded, overlapping, or without memory."""
    dtype = choose.choice(DTYPES) if choose.random() < 0.6 else rushlight.float32
    if choose.random() < 0.4:
        shape = tuple(choose.choice(SIZES) for _ in range(choose.choice(DIMENSIONS)))
    if choose.random() < 0.02:
        return rushlight.empty(shape, dtype=dtype, device="meta")
    values = np.random.default_rng(choose.getrandbits(32)).uniform(-3, 5, shape)
    tensor = rushlight.from_numpy(np.asarray(values)).to(dtype)
    kind = choose.random()
    if kind < 0.2 and tensor.dim() > 1:
        return tensor.transpose(0, -1)
    if kind < 0.3 and tensor.dim():
        return tensor[::2]
    if kind < 0.35:
        return tensor.unsqueeze(0).expand(2, *shape)
    if kind < 0.4 and tensor.numel() > 4:
        return tensor.as_strided((2, 2), (1, 1))
    return tensor.requires_grad_() if kind > 0.9 and dtype in FLOATS else tensor


def random_value(choose: random.Random, argument: Argument, shape: tuple[int, ...]) -> object:
    """A random value of the kind that the argument's schema names."""
    kind = argument.type
    if kind.optional and choose.random() < 0.3:
        return None
    if kind.is_list:
        count = kind.length if kind.length and choose.random() < 0.9 else choose.choice((0, 1, 2, 2, 3, 4))
        if kind.base == "Tensor":
            return [random_tensor(choose, shape) for _ in range(min(count, 3))]
        return [choose.choice(LIST_CHOICES.get(kind.base, CHOICES["float"])) for _ in range(count)]
    if kind.base == "Tensor":
        return random_tensor(choose, shape)
    return choose.choice(CHOICES[kind.base]) if kind.base in CHOICES else None


def random_call(op: OpOverload, trial: int) -> tuple[list, dict]:
    """The arguments of one trial; the same for the same operator and number."""
    choose = random.Random(f"{op.name} {trial}")
    shape = tuple(choose.choice((1, 2, 3, 4)) for _ in range(choose.choice((1, 2, 3, 4))))
    args, kwargs = [], {}
    for argument in op._schema.arguments:
        value = random_value(choose, argument, shape)
        if not argument.kwarg_only:
            args.append(value)
        elif not argument.has_default or choose.random() < 0.5:
            kwargs[argument.name] = value
    return args, kwargs


def finding(op: OpOverload, trial: int) -> str | None:
    """The problem with a trial's error; None if there was no error, or a proper one."""
    args, kwargs = random_call(op, trial)
    try:
        op(*args, **kwargs)
    except EXPECTED_ERRORS as error:
        internal = isinstance(error, RecursionError) or INTERNAL_TEXT.search(str(error))
        return f"{type(error).__name__}: {error}" if internal else None
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def run_batch(batch: list[OpOverload], trials: range, position_file: str, finding: Callable = finding) -> None:
    """In a child process: prints a line per operator with findings. `position_file` always names the running trial."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    position = os.open(position_file, os.O_WRONLY | os.O_CREAT)
    for op in batch:
        found: dict[str, int] = {}
        for trial in trials:
            os.pwrite(position, f"{op.name} --trial {trial}".ljust(120).encode(), 0)
            faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)
            text = finding(op, trial)
            faulthandler.cancel_dump_traceback_later()
            if text is not None:
                found.setdefault(re.sub(r"\d+", "N", text.partition("\n")[0])[:160], trial)
        for text, trial in found.items():
            print(f"{op.name} --trial {trial}: {text}", flush=True)


def findings(names: list[str], trials: range, module: str = "tests.fuzz_arguments") -> Iterator[str]:
    """Runs a batch in child processes, with a new one after each crash, and returns the lines of their reports."""
    while names:
        with tempfile.NamedTemporaryFile("r") as position:
            numbers = ["--first-trial", str(trials.start), "--trials", str(len(trials))]
            command = [sys.executable, "-m", module, *numbers, "--child", position.name, "--only", *names]
            child = subprocess.run(command, capture_output=True, text=True)
            yield from child.stdout.splitlines()
            if child.returncode == 0:
                return
            place = position.read().strip()
        why = "hangs" if "Timeout" in child.stderr else f"crashes, status {child.returncode}: {child.stderr[-300:]}"
        yield f"{place}: {why}"
        failed = place.partition(" ")[0]
        names = names[names.index(failed) + 1 :] if failed in names else []


def replay(op: OpOverload, trial: int, call: Callable = random_call) -> None:
    """Prints the arguments and the result of one trial."""
    args, kwargs = call(op, trial)
    for argument, value in zip(op._schema.arguments, args, strict=False):
        geometry = f" {tuple(value.shape)} {value.stride()}" if isinstance(value, rushlight.Tensor) else ""
        print(f"{argument.name}{geometry} = {value}")
    print(kwargs)
    try:
        print(op(*args, **kwargs))
    except Exception:
        traceback.print_exc(limit=-6)


def main(
    module: str = "tests.fuzz_arguments", about: str = __doc__, finding: Callable = finding, call: Callable = random_call
) -> int:
    """Runs all operators, or some, and reports. `finding` checks one trial; `call` makes its arguments."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=100, help="calls of each operator")
    parser.add_argument("--first-trial", type=int, default=0, help="the number of the first call, from which it is drawn")
    parser.add_argument("--start", type=int, default=0, help="the number of the first operator, by name")
    parser.add_argument("--count", type=int, default=None, help="how many operators")
    parser.add_argument("--only", nargs="+", help="operators by full name, as aten::add.Tensor")
    parser.add_argument("--trial", type=int, help="replay one trial of the operator")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    chosen = [op for op in operators() if options.only is None or op.name in options.only]
    if options.count is not None:
        chosen = chosen[options.start : options.start + options.count]
    trials = range(options.first_trial, options.first_trial + options.trials)
    if options.child is not None:
        run_batch(chosen, trials, options.child, finding)
        return 0
    if options.trial is not None:
        replay(chosen[0], options.trial, call)
        print(finding(chosen[0], options.trial))
        return 0
    names, total = [op.name for op in chosen], 0
    for first in range(0, len(names), 60):
        for line in findings(names[first : first + 60], trials, module):
            total += 1
            print(line, flush=True)
    print(f"{len(names)} operators, {options.trials} calls each: {total} findings")
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
