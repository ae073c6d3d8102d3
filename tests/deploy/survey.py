"""What can be exported: `python -m tests.deploy.survey` exports modules and programs, runs them without Python, and compares.

In: the zoo of tests/jit, or modules by name. Out: for each, whether it was exported and agrees, or why not.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

import rushlight as torch
from rushlight.core.pytree import tree_flatten
from rushlight.deploy import NotExportable, export
from rushlight.deploy.binding import Model, ModelError
from rushlight.deploy.targets import build_library
from tests.jit.zoo_of import zoo_of

CALLS = 3


def as_arrays(value: object) -> object:
    """A value with arrays in the place of tensors."""
    if isinstance(value, torch.Tensor):
        return value.detach().numpy(force=True)
    if isinstance(value, dict):
        return {key: as_arrays(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(as_arrays, value)) if type(value) in (list, tuple) else tuple(map(as_arrays, value))
    return value


def difference(found: object, expected: object) -> str:
    """What is different; empty for nothing but rounding."""
    ours, theirs = tree_flatten(found)[0], tree_flatten(expected)[0]
    if len(ours) != len(theirs):
        return f"{len(ours)} values for {len(theirs)}"
    for one, other in zip(ours, theirs, strict=True):
        if isinstance(other, np.ndarray):
            if one.shape != other.shape or one.dtype != other.dtype:
                return f"{one.dtype}{one.shape} for {other.dtype}{other.shape}"
            wide = np.result_type(other.dtype, np.float64)
            if not np.allclose(one.astype(wide), other.astype(wide), rtol=1e-4, atol=1e-5, equal_nan=True):
                return f"values off by {np.abs(one.astype(wide) - other.astype(wide)).max()}"
        elif isinstance(other, float):
            if not np.isclose(one, other, rtol=1e-5, equal_nan=True):
                return f"{one!r} for {other!r}"
        elif one != other or type(one) is not type(other):
            return f"{one!r} for {other!r}"
    return ""


def outcome(make: Callable[[], tuple], folder: Path) -> str:
    """How exporting, building and running one goes: "agrees", or what is wrong."""
    torch.manual_seed(0)
    module, arguments = make()
    torch.manual_seed(0)
    reference, arguments_of = make()
    try:
        made = export(module, tuple(arguments), folder, name="model", force=True)
    except NotExportable as error:
        return f"not exported: {str(error).splitlines()[0]}" + "".join(f" |{line}" for line in str(error).splitlines()[1:3])
    library = build_library(made, "model")
    model = Model(library, "model", made / "model.weights")
    for _ in range(CALLS):
        expected = as_arrays(reference(*arguments_of))
        try:
            found = model(*as_arrays(tuple(arguments)))
        except ModelError as error:
            return f"fails: {error}"
        wrong = difference(found, expected)
        if wrong:
            return f"differs: {wrong}"
    return "agrees"


def main() -> None:
    """Print the outcomes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    zoo, counts = zoo_of("rushlight"), Counter()
    for name, make in zoo.items():
        if options.names and name not in options.names:
            continue
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = outcome(make, Path(folder))
            except Exception as error:  # whatever goes wrong is an outcome
                found = f"raises {type(error).__name__}: {str(error)[:300]}"
        counts[found.partition(":")[0].partition(" raises")[0]] += 1
        print(f"{name}: {found}", flush=True)
    print(dict(counts))


if __name__ == "__main__":
    main()
