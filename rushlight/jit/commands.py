"""The commands `rushlight info`, `rushlight run`, `rushlight bench` and `rushlight code` for TorchScript archives.

In: the words of a command line. Out: text on standard output, results in files, and an exit status: 0, or 1 with what is wrong
on standard error.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence

import numpy as np

from rushlight.core.parallel import set_num_threads
from rushlight.core.tensor import Tensor, from_numpy
from rushlight.jit.function import Function
from rushlight.jit.ir.graph import Graph
from rushlight.jit.measuring import example_tensor, method_of, native_report, timing_report
from rushlight.jit.module import ScriptModule
from rushlight.jit.operators.registry import operators_named
from rushlight.jit.serialization.class_printer import Program
from rushlight.jit.serialization.loading import load
from rushlight.jit.types.kinds import ClassType

_INTERPRETER_OPERATORS = ("prim::", "aten::wait")
"""Operators that the interpreter runs by its own instructions, even if no such operator is registered."""

_EXAMPLE = re.compile(r"(\w+)\[([\d, ]*)\]")


_BROKEN_PIPE_STATUS = 128 + 13  # a shell's exit status for a program killed by SIGPIPE


def main(words: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit status."""
    options = _make_parser().parse_args(words)
    try:
        options.command(options)
        sys.stdout.flush()
    except BrokenPipeError:  # the process that reads this output has closed the pipe
        # Else Python would print an error when it flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE_STATUS
    except (RuntimeError, OSError, ValueError, TypeError) as error:
        print(f"rushlight: {error}", file=sys.stderr)
        return 1
    return 0


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="rushlight", description="Look into and run TorchScript archives, without PyTorch.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    text = "methods, submodules, sizes, operators, and whether all of them are supported"
    info = _add_command(commands, "info", _run_info, text)
    info.add_argument("--operators", action="store_true", help="list every operator with how often it occurs")
    info.add_argument("--native", action="store_true", help="compile it by calls; then say how each part runs")
    _add_call(info)
    text = "run a Python program in which `import torch` gives Rushlight"
    commands.add_parser("exec", help=text, add_help=False)
    commands.add_parser("export", help="write a model as C++ with a C interface, which runs without Python", add_help=False)
    text = "run a program or an archive, and write a page with every stage of the compiler"
    commands.add_parser("explore", help=text, add_help=False)
    run = _add_command(commands, "run", _run_run, "call a method and print the result, or save it")
    _add_call(run)
    run.add_argument("--output", metavar="FILE", help="an .npy or .npz file for the tensors of the result")
    bench = _add_command(commands, "bench", _run_bench, "how long loading, the first call and later calls take")
    _add_call(bench)
    bench.add_argument("--threads", type=int, help="how many threads share the work of a call")
    bench.add_argument("--seconds", type=float, default=3.0, help="how long calls are measured")
    code = _add_command(commands, "code", _run_code, "the methods of the module as Python")
    code.add_argument("--module", default="", help="a submodule, such as encoder.layers.0")
    code.add_argument("--all", action="store_true", help="all files of the program, with its classes and functions")
    code.add_argument("--graph", action="store_true", help="graphs in place of code")
    return parser


def _add_call(parser: argparse.ArgumentParser) -> None:
    kinds = ".npy or .npz files, or numbers, strings and lists as JSON; float32[1,3,224,224] stands for random numbers"
    parser.add_argument("--input", nargs="*", default=[], metavar="X", help=kinds)
    parser.add_argument("--method", default="forward")


def _add_command(commands: object, name: str, run: object, text: str) -> argparse.ArgumentParser:
    made = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
    made.add_argument("archive", help="a .pt file that torch.jit.save or rushlight.jit.save wrote")
    made.set_defaults(command=run)
    return made


# info


def _run_info(options: argparse.Namespace) -> None:
    module = load(options.archive, map_location="cpu")
    if options.native:
        print("\n".join(native_report(module, options.method, _arguments(options))))
        return
    print(f"{module._c.type.name}  ({options.archive})")
    for method in module._c.type.methods.values():
        print(f"  {_signature(method.schema)}")
    _print_sizes(module)
    counts, problems = operators_of(module)
    missing = [name for name in counts if not is_supported(name)]
    print(f"operators: {len(counts)} kinds, {sum(counts.values())} nodes")
    if options.operators:
        for name, count in sorted(counts.items()):
            print(f"  {count:6}  {name}{'' if is_supported(name) else '  (not supported)'}")
    for name in missing:
        print(f"  not supported: {name}")
    for problem in problems:
        print(f"  does not compile: {problem}")
    print("supported: no" if problems else "supported: except for code that calls these" if missing else "supported: yes")


def _signature(schema: object) -> str:
    parts = [f"{each.name}: {each.type}" + f" = {each.default!r}" * each.has_default for each in schema.arguments[1:]]
    return f"{schema.name.rpartition('.')[2]}({', '.join(parts)}) -> {schema.return_type}"


def _print_sizes(module: ScriptModule) -> None:
    kinds = Counter(each.original_name for each in module.modules())
    print(f"modules: {sum(kinds.values())} ({', '.join(f'{count} {name}' for name, count in kinds.most_common(12))})")
    for what, tensors in (("parameters", list(module.parameters())), ("buffers", list(module.buffers()))):
        count, size = sum(each.numel() for each in tensors), sum(each.numel() * each.element_size() for each in tensors)
        kinds = sorted({str(each.dtype) for each in tensors})
        print(f"{what}: {len(tensors)} tensors, {count:,} elements, {size:,} bytes{' of ' + ', '.join(kinds) if kinds else ''}")


def operators_of(module: ScriptModule) -> tuple[Counter[str], list[str]]:
    """Return the number of uses of each operator in a module's methods and everything they call, and the methods that don't
    compile."""
    counts: Counter[str] = Counter()
    problems = []
    pending = [method for each in module.modules() for method in each._c.type.methods.values()]
    seen: set[Function] = set()
    while pending:
        function = pending.pop()
        if function in seen:
            continue
        seen.add(function)
        try:
            pending += _count(function.graph, counts)
        except RuntimeError as error:
            problems.append(f"{function.name}: {_first_line(error)}")
    return counts, problems


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _count(graph: Graph, counts: Counter[str]) -> list[Function]:
    """Count a graph's nodes; returns the functions and methods that it calls."""
    called = []
    for node in graph.all_nodes():
        inner = node.attributes.get("Subgraph")
        if isinstance(inner, Graph):
            called += _count(inner, counts)
        if isinstance(node.attributes.get("value"), Function):
            called.append(node["value"])
        if node.kind == "prim::CallMethod" and isinstance(node.input().type, ClassType):
            called.append(node.input().type.find_method(node["name"]))
        if node.kind != "prim::Constant":
            counts[node.kind] += 1
    return called


def is_supported(name: str) -> bool:
    """Return whether an operator is one of the interpreter's own, or the library has it."""
    if name.startswith(_INTERPRETER_OPERATORS):
        return True
    found = operators_named(name)
    return bool(found) and not all(each.is_missing for each in found)


# run


def _run_run(options: argparse.Namespace) -> None:
    module = load(options.archive, map_location="cpu")
    result = method_of(module, options.method)(*_arguments(options))
    if options.output:
        _save(options.output, _tensors(result, "result"))
    else:
        print(result)


def _arguments(options: argparse.Namespace) -> list[object]:
    return arguments_of(options.input)


def arguments_of(words: Sequence[str]) -> list[object]:
    """Return the arguments that words of a command line stand for: files of arrays, JSON, or `float32[2,3]`."""
    return [value for word in words for value in _inputs(word)]


def _run_bench(options: argparse.Namespace) -> None:
    if options.threads is not None:
        set_num_threads(options.threads)
    arguments = _arguments(options)
    start = time.perf_counter()
    module = load(options.archive, map_location="cpu")
    loaded = time.perf_counter() - start
    print("\n".join(timing_report(module, options.method, arguments, loaded, options.seconds)))


def _inputs(word: str) -> list[object]:
    """Return the arguments that a word describes: the array of an .npy file, the arrays of an .npz file, random numbers of a
    dtype and size, or a JSON value."""
    example = _EXAMPLE.fullmatch(word)
    if example is not None:
        return [example_tensor(example[1], [int(size) for size in example[2].split(",") if size.strip()])]
    if word.endswith(".npy"):
        return [from_numpy(np.load(word, allow_pickle=False))]
    if word.endswith(".npz"):
        with np.load(word, allow_pickle=False) as arrays:
            return [from_numpy(arrays[name]) for name in arrays.files]
    try:
        return [json.loads(word)]
    except json.JSONDecodeError:
        return [word]


def _tensors(value: object, name: str) -> dict[str, np.ndarray]:
    """Return the tensors in a result, by path: `result`, `result.0`, `result.key`."""
    if isinstance(value, Tensor):
        return {name: value.detach().numpy()}
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list | tuple) else ()
    return {key: array for part, item in pairs for key, array in _tensors(item, f"{name}.{part}").items()}


def _save(path: str, arrays: dict[str, np.ndarray]) -> None:
    if not arrays:
        raise RuntimeError("the result holds no tensors to save")
    if path.endswith(".npy"):
        if len(arrays) != 1:
            raise RuntimeError(f"the result holds {len(arrays)} tensors; save them in an .npz file")
        np.save(path, next(iter(arrays.values())))
    else:
        np.savez(path, **arrays)
    for name, array in arrays.items():
        print(f"{name}: {array.dtype} {list(array.shape)}")


# code


def _run_code(options: argparse.Namespace) -> None:
    module = load(options.archive, map_location="cpu")
    found = dict(module.named_modules()).get(options.module)
    if found is None:
        raise RuntimeError(f"there is no submodule '{options.module}'")
    if options.all:
        program = Program()
        program.add(found._c.type)
        print("\n".join(f"# {name}\n{text}" for name, text in program.files().items()), end="")
        return
    for name in found._c.type.methods:
        method = found._method(name)
        print(method.graph if options.graph else method.code)
