"""Cases of the survey: a folder with an archive, the arguments of a call, and, where another library knows it, the result.

In: scripted functions or modules, and arguments. Out: folders; what exporting, building and running one of them comes to.
"""

from __future__ import annotations

import copy
import json
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import rushlight as torch
from rushlight.core.pytree import tree_flatten
from rushlight.deploy import NotExportable, export
from rushlight.deploy.binding import Model, ModelError
from rushlight.deploy.targets import build_library

CALLS = 3
_FLAGS = ("-O1",)


def write_case(folder: Path, program: object, arguments: Sequence[object]) -> None:
    """Writes a case with the program's own result. Raises whatever saving and loading raise."""
    folder.mkdir(parents=True)
    torch.jit.save(program, str(folder / "model.pt"))
    torch.save({"arguments": list(arguments)}, str(folder / "arguments.pt"))
    torch.jit.load(str(folder / "model.pt"))
    torch.load(str(folder / "arguments.pt"))


def as_arrays(value: object) -> object:
    """A value in the form in which it crosses the interface: tensors and complex numbers become arrays."""
    if isinstance(value, torch.Tensor):
        return value.detach().numpy(force=True)
    if isinstance(value, complex):
        return np.array(value)
    if isinstance(value, dict):
        return {key: as_arrays(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(as_arrays, value)) if type(value) in (list, tuple) else tuple(map(as_arrays, value))
    return value


def difference(found: object, expected: object) -> str:
    """The difference between two results; empty if they agree up to rounding."""
    ours, theirs = tree_flatten(found)[0], tree_flatten(expected)[0]
    if len(ours) != len(theirs):
        return f"{len(ours)} values for {len(theirs)}"
    for one, other in zip(ours, theirs, strict=True):
        if isinstance(other, np.ndarray):
            if not isinstance(one, np.ndarray) or one.shape != other.shape or one.dtype != other.dtype:
                return f"{getattr(one, 'dtype', type(one))}{getattr(one, 'shape', '')} for {other.dtype}{other.shape}"
            wide = np.result_type(other.dtype, np.float64)
            if not np.allclose(one.astype(wide), other.astype(wide), rtol=1e-4, atol=1e-4, equal_nan=True):
                return f"values off by {np.abs(one.astype(wide) - other.astype(wide)).max():.2g}"
        elif isinstance(other, float):
            if not isinstance(one, float) or not np.isclose(one, other, rtol=1e-5, equal_nan=True):
                return f"{one!r} for {other!r}"
        elif one != other or type(one) is not type(other):
            return f"{one!r} for {other!r}"
    return ""


def outcome(case: Path) -> str:
    """Exports, builds and runs a case: "agrees", or the problem."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with TemporaryDirectory() as folder:
                return _outcome(case, Path(folder))
        except Exception as error:  # every exception is an outcome
            return f"raises {type(error).__name__}: {str(error)[:300]}"


def _outcome(case: Path, folder: Path) -> str:
    module = torch.jit.load(str(case / "model.pt"))
    arguments, known = _arguments(case)
    reference = None if known is not None else torch.jit.load(str(case / "model.pt"))
    torch.manual_seed(0)
    try:
        made = export(module, tuple(copy.deepcopy(arguments)), folder, name="model", force=True)
    except NotExportable as error:
        return "not exported: " + " | ".join(line.strip() for line in str(error).splitlines()[:5])
    library = build_library(made, "model", flags=_FLAGS)
    model = Model(library, "model", made / "model.weights")
    for _ in range(CALLS):
        expected = known if known is not None else _as_results(as_arrays(reference(*copy.deepcopy(arguments))))
        try:
            found = model(*as_arrays(tuple(copy.deepcopy(arguments))))
        except ModelError as error:
            return f"fails: {error}"
        wrong = difference(found, expected)
        if wrong:
            return f"differs: {wrong}"
    return "agrees"


def _as_results(value: object) -> object:
    """A result as the binding returns it: a tuple of one becomes its element."""
    return value[0] if isinstance(value, tuple) and len(value) == 1 else value


def _arguments(case: Path) -> tuple[list, object]:
    if (case / "values.npz").exists():
        values = np.load(case / "values.npz")
        given = [torch.from_numpy(values[name]) for name in sorted(values.files) if name.startswith("given_")]
        return given, values["result"]
    return torch.load(str(case / "arguments.pt"))["arguments"], None


def main() -> None:
    """The survey's worker process: reads folder names from standard input and answers each with its outcome as one line of
    JSON."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # programs print to standard output, too
    for line in sys.stdin:
        print(json.dumps(outcome(Path(line.strip()))), file=answers, flush=True)


if __name__ == "__main__":
    main()
