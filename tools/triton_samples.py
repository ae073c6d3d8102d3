"""Run PyTorch's operator samples through Triton kernels: `python -m tools.triton_samples`.

Each operator of `torch.testing`'s OpInfo is compiled for the target "triton-interpreter", for its first samples of float32.
The results are compared with Rushlight's eager results, and each kernel is compiled to cubins for sm_80 and sm_90. Nothing runs
on a GPU. Needs PyTorch, expecttest and Triton. Prints a table, and per operator what differs, what was refused and why.

    python -m tools.triton_samples --only add,softmax --samples 20
    python -m tools.triton_samples --gradients --no-cubins --minutes 30 --out samples.json
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import functools
import json
import os
import random
import sys
import time
import types
import warnings
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"

import torch as oracle
from torch.testing._internal import common_methods_invocations as samples
from torch.testing._internal.opinfo.core import BinaryUfuncInfo, ReductionOpInfo, UnaryUfuncInfo

import rushlight as torch
from rushlight.compiler.logs import leave, listen
from rushlight.inductor.triton.compiler import compile_apart, spec_of

PRODUCTS = {
    "__rmatmul__", "addbmm", "addmm", "addmv", "addr", "baddbmm", "bmm", "chain_matmul", "cdist", "dot", "einsum", "inner",
    "kron", "linalg.matmul", "linalg.matrix_power", "linalg.multi_dot", "linalg.vecdot", "matmul", "mm", "mv",
    "nn.functional.bilinear", "nn.functional.conv1d", "nn.functional.conv2d", "nn.functional.conv3d",
    "nn.functional.conv_transpose1d", "nn.functional.conv_transpose2d", "nn.functional.conv_transpose3d",
    "nn.functional.linear", "outer", "tensordot", "vdot", "nn.functional.scaled_dot_product_attention",
    "nn.functional.multi_head_attention_forward",
}  # fmt: skip
INDEXING = {
    "__getitem__", "cat", "column_stack", "diag", "diag_embed", "diagonal", "diagonal_scatter", "dstack", "expand", "flip",
    "gather", "hstack", "index_add", "index_copy", "index_fill", "index_put", "index_reduce", "index_select", "masked_fill",
    "masked_scatter", "masked_select", "narrow", "nn.functional.embedding", "nn.functional.embedding_bag",
    "nn.functional.one_hot", "nn.functional.pad", "permute", "put", "repeat", "repeat_interleave", "roll", "rot90", "scatter",
    "scatter_add", "scatter_reduce", "searchsorted", "select", "select_scatter", "slice", "slice_scatter", "split", "stack",
    "t", "take", "take_along_dim", "tile", "transpose", "tril", "triu", "unbind", "unfold", "vstack", "where",
}  # fmt: skip
RANDOM = ("rand", "empty", "new_empty", "bernoulli", "multinomial", "normal", "uniform", "cauchy", "exponential", "geometric",
          "log_normal", "nn.functional.dropout", "nn.functional.alpha_dropout", "nn.functional.feature_alpha_dropout",
          "nn.functional.rrelu", "nn.functional.fractional_max_pool", "nn.functional.multi_head_attention")  # fmt: skip
AGREE = {"rtol": 1e-3, "atol": 1e-4}


class Unusable(Exception):
    """A sample that has no counterpart here."""


class Pieces:
    """A listener that collects the Triton pieces of all graphs."""

    def __init__(self) -> None:
        self.found: list = []

    def heard(self, log: Any, record: Any) -> None:
        if record.stage == "code":
            self.found.append(record.subject)

    def interpreting(self, log: Any) -> contextlib.AbstractContextManager:
        return contextlib.nullcontext()


def kind_of(op: Any) -> str:
    if isinstance(op, UnaryUfuncInfo | BinaryUfuncInfo):
        return "elementwise"
    if op.name in PRODUCTS:
        return "products"
    if op.name in INDEXING:
        return "indexing"
    return "reductions" if isinstance(op, ReductionOpInfo) else "others"


def to_ours(value: Any, gradients: bool) -> Any:
    """Convert a sample's argument; strides are kept."""
    if isinstance(value, oracle.Tensor):
        if value.layout != oracle.strided or value.is_quantized or value.dtype == oracle.bfloat16:
            raise Unusable
        plain = value.detach().resolve_conj().resolve_neg()
        made = torch.from_numpy(plain.contiguous().numpy().copy())
        if not plain.is_contiguous() and plain.numel() and 0 not in plain.stride():
            made = torch.empty_strided(tuple(plain.shape), plain.stride(), dtype=made.dtype).copy_(made)
        return made.requires_grad_() if gradients and value.requires_grad else made
    if isinstance(value, oracle.dtype | oracle.memory_format | oracle.layout):
        return getattr(torch, str(value).split(".")[1])
    if isinstance(value, oracle.device):
        return torch.device(str(value))
    if isinstance(value, oracle.Generator):
        raise Unusable
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(to_ours(each, gradients) for each in value))
    if isinstance(value, list | tuple):
        return type(value)(to_ours(each, gradients) for each in value)
    return {name: to_ours(each, gradients) for name, each in value.items()} if isinstance(value, dict) else value


def function_of(op: Any) -> Any:
    """Return our function for an OpInfo; None if there is none."""
    seeded = isinstance(op.op, types.FunctionType) and "wrapper_set_seed" in op.op.__code__.co_names
    if isinstance(op.op, types.FunctionType) and op.op.__module__.startswith("torch.testing._internal") and not seeded:
        names = {name: torch if value is oracle else value for name, value in op.op.__globals__.items()}
        made = types.FunctionType(op.op.__code__, names, op.op.__name__, op.op.__defaults__, op.op.__closure__)
        made.__kwdefaults__ = op.op.__kwdefaults__
        return made
    try:
        return functools.reduce(getattr, op.name.split("."), torch)
    except AttributeError:
        return getattr(torch.Tensor, op.name, None)


def tensors_of(value: Any) -> list:
    if isinstance(value, list | tuple):
        return [each for item in value for each in tensors_of(item)]
    return [value] if isinstance(value, torch.Tensor) else []


def run_with_gradients(function: Any, given: tuple) -> list:
    """Return the results, and the gradients of all inputs that want them, for gradients of ones."""
    results = tensors_of(function(*given[0], **given[1]))
    wanted = [each for each in tensors_of([given[0], list(given[1].values())]) if each.requires_grad]
    grown = [each for each in results if each.requires_grad and each.is_floating_point()]
    if not wanted or not grown:
        return [each.detach() for each in results]
    gradients = torch.autograd.grad(sum(each.sum() for each in grown), wanted, allow_unused=True)
    return [*(each.detach() for each in results), *(each for each in gradients if each is not None)]


def agree(ours: list, theirs: list) -> bool:
    if len(ours) != len(theirs):
        return False
    try:
        for found, wanted in zip(ours, theirs, strict=True):
            torch.testing.assert_close(found, wanted, equal_nan=True, **AGREE)
    except AssertionError:
        return False
    return True


class Report:
    """The outcomes of all operators, and their distinct kernels."""

    def __init__(self) -> None:
        self.outcomes: dict[str, tuple[str, collections.Counter, list[str]]] = {}
        self.kernels: dict[str, tuple[str, Any, str]] = {}

    def run(self, op: Any, limit: int, gradients: bool) -> None:
        """Run an operator's samples."""
        counts, notes = collections.Counter(), []
        name = op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")
        self.outcomes[name] = kind_of(op), counts, notes
        function = function_of(op)
        if function is None:
            counts["missing"] += 1
            return
        gradients = gradients and op.supports_autograd
        oracle.manual_seed(0)
        for number, sample in enumerate(op.sample_inputs("cpu", oracle.float32, requires_grad=gradients)):
            if number >= limit:
                break
            try:
                given = (to_ours((sample.input, *sample.args), gradients), to_ours(sample.kwargs, gradients))
            except Unusable:
                continue
            self._run_sample(name, function, given, counts, notes, gradients)

    def _run_sample(self, name: str, function: Any, given: tuple, counts: Any, notes: list[str], gradients: bool) -> None:
        run = run_with_gradients if gradients else lambda called, given: tensors_of(called(*given[0], **given[1]))
        pieces = Pieces()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                wanted = run(function, given)
            except Exception:
                counts["eager fails"] += 1
                return
            listen(pieces)
            try:
                target = {"target": "triton-interpreter"}
                found = run(torch.compile(lambda *args, **named: function(*args, **named), options=target), given)
            except Exception as error:
                counts["fails"] += 1
                notes.append(f"fails: {type(error).__name__}: {str(error).splitlines()[0][:150]}")
                return
            finally:
                leave(pieces)
        programs = [program for made in pieces.found for _, program in made.programs]
        eager = {f"{why}" for made in pieces.found for why in made.eager.values()}
        if not programs:
            counts["no kernel"] += 1
            notes += [f"refused: {why}" for why in eager] or ["no kernel: views, or nothing that is captured"]
            return
        random = name.startswith(RANDOM) or bool(given[1].get("dropout_p"))
        right = random or agree(found, wanted)
        counts["agrees" if right else "differs"] += 1
        if not right:
            notes.append("differs")
        if eager:
            counts["in part"] += 1
            notes += [f"in part: {why}" for why in eager]
        for program in programs:
            for launch in program.kernels.values():
                key = f"{launch.text('@')} {launch.parameters} {launch.choice}"
                self.kernels.setdefault(key, (name, launch, program.kernel_source))

    def compile(self, capabilities: tuple[int, ...], most: int | None, batch: int = 200) -> tuple[int, dict[str, list[str]]]:
        """Compile all kernels, or `most` of them at random; returns their number and the errors by operator."""
        work = list(self.kernels.values())
        if most is not None:
            work = random.Random(0).sample(work, min(most, len(work)))
        errors: dict[str, list[str]] = {}
        for start in range(0, len(work), batch):
            part = work[start : start + batch]
            given = [(source, [spec_of(launch)]) for _, launch, source in part]
            for result in compile_apart(given, capabilities, timeout=3600):
                if "error" in result:
                    name = part[result["program"]][0]
                    errors.setdefault(name, []).append(f"sm_{result['capability']}: {result['kernel']}: {result['error']}")
        return len(work), errors


def print_table(report: Report) -> None:
    """Print a row per kind of operator."""
    columns = ("agrees", "differs", "fails", "in part", "no kernel", "eager fails")
    print("| kind | operators | all agree | " + " | ".join(columns) + " |")
    print("|---|" + "---:|" * (len(columns) + 2))
    kinds = ("elementwise", "reductions", "indexing", "products", "others")
    for kind in (*kinds, "all"):
        rows = [counts for each, counts, _ in report.outcomes.values() if kind in (each, "all") and "missing" not in counts]
        total = sum(rows, collections.Counter())
        good = sum(bool(row["agrees"]) and not row["differs"] and not row["fails"] for row in rows)
        print(f"| {kind} | {len(rows)} | {good} | " + " | ".join(str(total[column]) for column in columns) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="comma-separated names of operators, or of kinds")
    parser.add_argument("--samples", type=int, default=5, help="samples per operator")
    parser.add_argument("--gradients", action="store_true", help="compile training, and compare gradients")
    parser.add_argument("--minutes", type=float, help="start no operator after this time; operators come in random order then")
    parser.add_argument("--cubins", type=int, help="compile only this many kernels to cubins, chosen at random")
    parser.add_argument("--no-cubins", action="store_true", help="do not compile kernels to cubins")
    parser.add_argument("--out", help="a file for the outcomes of all operators as JSON")
    arguments = parser.parse_args()
    only = set(arguments.only.split(",")) if arguments.only else None
    report, started = Report(), time.time()
    chosen = [op for op in samples.op_db if only is None or {op.name, kind_of(op)} & only]
    chosen = [op for op in chosen if oracle.float32 in op.supported_dtypes("cpu")]
    if arguments.minutes is not None:
        random.Random(0).shuffle(chosen)
    for number, op in enumerate(chosen):
        if arguments.minutes is not None and time.time() - started > 60 * arguments.minutes:
            print(f"stopped after {number} of {len(chosen)} operators")
            break
        print(f"{number + 1}/{len(chosen)} {op.name}", file=sys.stderr, flush=True)
        report.run(op, arguments.samples, arguments.gradients)
    print_table(report)
    print(f"\n{len(report.kernels)} distinct kernels; {time.time() - started:.0f} s")
    for name, (_, _, notes) in report.outcomes.items():
        for note, count in collections.Counter(notes).items():
            print(f"  {name}: {note} ({count})")
    tried, errors = (0, {}) if arguments.no_cubins else report.compile((80, 90), arguments.cubins)
    if not arguments.no_cubins:
        count = 2 * tried
        made = count - sum(map(len, errors.values()))
        print(f"{made} of {count} cubins for sm_80 and sm_90; {time.time() - started:.0f} s")
        for name, each in errors.items():
            print(f"  {name}: {each[0][:300]}")
    if arguments.out:
        outcomes = {name: [*outcome, errors.get(name, [])] for name, outcome in report.outcomes.items()}
        with open(arguments.out, "w") as file:
            json.dump(outcomes, file, indent=0)


if __name__ == "__main__":
    main()
