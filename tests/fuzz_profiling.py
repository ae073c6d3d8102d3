"""The profiling executor against the plain one: the programs of tests/jit/programs, called again and again with tensors that change.

`python -m tests.fuzz_profiling` takes every program, once with checks around groups and once with guards that bail out of graphs,
and there lets every guard fail in turn. Differences are printed; the exit status is their number, at most 100.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import rushlight as torch
from rushlight.jit.runtime.executor import executor_of
from rushlight.jit.runtime.modes import change_modes
from tests.jit import differential

VARIANTS = {
    "as they are": lambda tensor: tensor,
    "more rows": lambda tensor: torch.cat([tensor, tensor]) if tensor.dim() else tensor,
    "float64": lambda tensor: tensor.double() if tensor.is_floating_point() else tensor,
    "columns first": lambda tensor: tensor.t().contiguous().t() if tensor.dim() == 2 else tensor,
    "with gradients": lambda tensor: tensor.clone().requires_grad_() if tensor.is_floating_point() else tensor,
    "no rows": lambda tensor: tensor[:0] if tensor.dim() else tensor,
}
SEQUENCE = (
    "as they are", "as they are", "more rows", "as they are", "float64", "columns first", "with gradients", "with gradients",
    "with gradients", "no rows", "as they are",
)  # fmt: skip
OTHERWISE = {("tensors-divided", "no rows"), ("tensors-products", "float64")}
"""Where another operator checks what it is given, after CanonicalizeOps and DecomposeOps, as in torch."""
Difference = tuple[str, object, str, object, object]


@contextlib.contextmanager
def chosen(**changed: object) -> Iterator[None]:
    """A block in which these modes are set."""
    before = change_modes(**changed)
    try:
        yield
    finally:
        change_modes(**{key: getattr(before, key) for key in changed})


def _deep(value: object, function) -> object:
    if isinstance(value, torch.Tensor):
        return function(value)
    if type(value) in (list, tuple):
        return type(value)(_deep(item, function) for item in value)
    return value


def _tensors(value: object) -> list:
    found: list = []
    _deep(value, found.append)
    return found


def _outcome(scripted, call: str, module, variant: str) -> tuple:
    torch.manual_seed(1)
    arguments = _deep(eval(call, vars(module)), VARIANTS[variant])
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            result = scripted(*arguments)
    except Exception as error:
        return "raises", differential.last_line(error)
    return differential.plain(result, torch), differential.plain(arguments, torch), _gradients(result, arguments)


def _gradients(result: object, arguments: object) -> object:
    results = [each for each in _tensors(result) if each.requires_grad and each.is_floating_point()]
    leaves = [each for each in _tensors(arguments) if each.requires_grad]
    if not results or not leaves:
        return None
    total = sum((each.double() * each.double()).sum() for each in results)
    return differential.plain(list(torch.autograd.grad(total, leaves, allow_unused=True)), torch)


def _compiled(module, program: differential.Program):
    torch.manual_seed(0)
    target = getattr(module, program.name)
    try:
        return torch.jit.script(target().eval() if isinstance(target, type) else target)
    except Exception:
        return None


class _Pair:
    """A program under both executors. `modules` are its file, loaded twice."""

    def __init__(self, program: differential.Program, modules: Sequence, tensor_exprs: bool):
        self.program = program
        self.plain_module, self.profiled_module = modules
        self.modes = {"profiling": True, "tensor_exprs": tensor_exprs}
        self.plain = _compiled(self.plain_module, program)
        with chosen(**self.modes):
            self.profiled = _compiled(self.profiled_module, program)

    def differences(self, variant: str, what: object = None) -> Iterator[Difference]:
        """Calls both executors for every call of the program."""
        for call in self.program.calls:
            wanted = _outcome(self.plain, call, self.plain_module, variant)
            with chosen(**self.modes):
                found = _outcome(self.profiled, call, self.profiled_module, variant)
            if not differential.same(wanted, found) and (str(self.program), variant) not in OTHERWISE:
                yield str(self.program), what or variant, call, wanted, found

    def bailouts(self) -> Iterator[Difference]:
        """Lets every guard of the plan fail in turn."""
        function = getattr(self.profiled, "_function", None) or self.profiled._c.type.find_method("forward")
        with chosen(**self.modes):
            code = executor_of(function).current_plan().code if function is not None else None
        for index in range(0 if code is None else code.num_bailouts()):
            code.request_bailout(index)
            yield from self.differences("as they are", f"bailout {index}")


def _loaded(folder: Path) -> dict:
    return {path.stem: differential.load(path, "rushlight", folder) for path in differential.FOLDER.glob("*.py")}


def compare(programs: Sequence[differential.Program], folder: Path, tensor_exprs: bool) -> tuple[int, list[Difference]]:
    """Returns the number of compared calls and the differences."""
    with chosen(profiling=False):
        plain, profiled = _loaded(folder), _loaded(folder)
        count, found = 0, []
        for program in programs:
            pair = _Pair(program, (plain[program.file], profiled[program.file]), tensor_exprs)
            if pair.plain is None:
                continue
            for position, variant in enumerate(SEQUENCE):
                found += pair.differences(variant)
                count += len(program.calls)
                if position == 1:
                    found += pair.bailouts()
        return count, found


def main() -> int:
    """Compare all programs."""
    warnings.simplefilter("ignore")
    total = 0
    for tensor_exprs in (True, False):
        with tempfile.TemporaryDirectory() as folder:
            count, differences = compare(differential.programs(), Path(folder), tensor_exprs)
        for each in differences:
            print(*each, sep="\n    ")
        print(f"{'checks' if tensor_exprs else 'guards'}: {count} calls, {len(differences)} differences")
        total += len(differences)
    return min(total, 100)


if __name__ == "__main__":
    sys.exit(main())
