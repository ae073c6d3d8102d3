"""Random programs compiled once with dynamic sizes and run at several."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import rushlight as torch
from rushlight.core.pytree import tree_flatten
from rushlight.core.tensor_impl import DataDependentError
from rushlight.inductor.sizes import UnsupportedSize
from tests.inductor.differences import difference
from tests.inductor.open_graphs import compile_open
from tests.inductor.random_inputs import InputSpec
from tests.inductor.random_programs import Program

NEW_SIZES = (2, 3, 4, 5, 6, 7, 9, 12, 16, 17, 33, 40)
ATTEMPTS = 6


@dataclass
class Outcome:
    """The result for a program: the problem, or ""; the number of other sizes it ran at; the reason if it was not compiled."""

    problem: str = ""
    served: int = 0
    refused: str = ""


def outcome(program: Program, seed: int, threads: int = 2) -> Outcome:
    """Compiles a program for the sizes of its inputs; compares with eager there and at other random sizes."""
    function = program.function()

    def flat(*inputs):
        made = function(*inputs)
        made = (made,) if isinstance(made, torch.Tensor) else made
        results = [tuple(result) if isinstance(result, torch.Size) else result for result in made]
        return tuple(tree_flatten(results)[0])

    inputs = [spec.make() for spec in program.inputs]
    dims = [[dim for dim, size in enumerate(tensor.shape) if size > 1] for tensor in inputs]
    try:
        compiled = compile_open(flat, inputs, dims, threads=threads)
    # The second is raised for what only dynamo captures, such as `t_`, the third for sizes that depend on data.
    except (UnsupportedSize, NotImplementedError, DataDependentError) as error:
        return Outcome(refused=str(error))
    found = Outcome()
    for attempt in range(ATTEMPTS):
        specs = program.inputs if attempt == 0 else resized(program.inputs, seed * ATTEMPTS + attempt)
        problem = difference(flat, compiled, lambda specs=specs: [spec.make() for spec in specs], program.precision)
        if attempt and "of the compiled graph must be" in problem or "the compiled graph is for sizes" in problem:
            continue  # the program, or its inputs' layout, requires another compilation
        if problem.startswith("eager raised") and ("IndexError" in problem or "out of bounds" in problem):
            continue  # an unused index is not computed
        found.served += 1
        if problem:
            found.problem = f"sizes {[spec.shape for spec in specs]}: {problem}"
            break
    return found


def resized(specs: list[InputSpec], seed: int) -> list[InputSpec]:
    """Inputs of other sizes; those that were equal stay equal."""
    rng, table = random.Random(seed), {0: 0, 1: 1}
    return [replace(spec, shape=tuple(table.setdefault(size, rng.choice(NEW_SIZES)) for size in spec.shape)) for spec in specs]

