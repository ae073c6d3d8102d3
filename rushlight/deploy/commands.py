"""The command `rushlight export`: write a model as a folder of C and C++, or as a library.

In: the words of a command line. Out: a folder, and an exit status: 0, or 1 with an error message on standard error.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import re
import sys
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.deploy.exporting import export
from rushlight.deploy.spelling import model_name
from rushlight.deploy.targets import TARGETS, build_library
from rushlight.deploy.wheel import build_wheel
from rushlight.export.archive import load as load_program
from rushlight.export.dynamic_shapes import Dim
from rushlight.export.exported_program import ExportedProgram
from rushlight.jit.measuring import example_tensor
from rushlight.jit.module import ScriptModule
from rushlight.jit.serialization.loading import load as load_archive
from rushlight.nn.modules.module import Module
from rushlight.utils.native.toolchain import BuildError, CompilerMissing

_TENSOR = re.compile(r"(\w+):(\w+)\[([^\]]*)\]")
_NUMBER = re.compile(r"(\w+)=(.*)", re.DOTALL)
_SIZE = re.compile(r"([A-Za-z_]\w*)(?:=(\d+)\.\.(\d+)?)?")
_EXAMPLE_SIZES = (3, 32)  # example sizes of open dimensions without bounds: the first dimension's, and that of all others

_DESCRIPTION = """\
Write a model as a folder of C and C++ that any C++17 compiler builds and that needs no Python.

MODEL is a TorchScript archive, an exported program (.pt2), or a module or function in Python as
package.module:name or file.py:name (a class is called without arguments; `import torch` gives Rushlight there).

--input says what a call is given, one for each argument in order:
  x:float32[1,3,224,224]    a tensor
  x:float32[n,3,224,224]    one with an open size, called n; the same name is the same size
  x:float32[n=1..64,3]      within bounds
  rate=16000                a number, string or list, as JSON
--target x86-64 builds for its levels v2, v3 and v4 in one library, of which the processor's own one runs.

Inputs behind --method NAME are those of that method; several methods share weights and state.
"""


class _MethodOrInput(argparse.Action):
    """Collects inputs by the method named before them."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: str | None = None) -> None:
        calls = namespace.calls
        if option == "--method":
            calls.append((values, []))
        else:
            if not calls:
                calls.append(("forward", []))
            calls[-1][1].extend(values)


def main(words: Sequence[str] | None = None, before_python: Callable[[], None] = lambda: None) -> int:
    """Run the command and return its exit status. `before_python` is called before a model written in Python is imported."""
    options = _make_parser().parse_args(words)
    try:
        _export(options, before_python)
    except (RuntimeError, OSError, ValueError, TypeError, AttributeError, ImportError, CompilerMissing, BuildError) as error:
        print(f"rushlight export: {error}", file=sys.stderr)
        return 1
    return 0


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="rushlight export", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.set_defaults(calls=[])
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("--input", nargs="+", metavar="INPUT", action=_MethodOrInput, default=argparse.SUPPRESS)
    parser.add_argument("--method", metavar="NAME", action=_MethodOrInput, default=argparse.SUPPRESS)
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="the folder to write")
    parser.add_argument("--name", help="what the C interface's names begin with; by default the folder's name")
    parser.add_argument("--embed", action="store_true", help="compile the weights in")
    parser.add_argument("--force", action="store_true", help="write into a folder that holds other files")
    parser.add_argument("--library", action="store_true", help="build the shared library, too")
    parser.add_argument("--static", action="store_true", help="build the static library, too")
    parser.add_argument("--python", action="store_true", help="build a Python wheel that needs NumPy only, too")
    parser.add_argument("--target", choices=TARGETS, default="native", help="the processor that libraries are built for")
    return parser


def _export(options: argparse.Namespace, before_python: Callable[[], None]) -> None:
    model = _load(options.model, before_python)
    folder = Path(options.output)
    name = options.name or model_name(folder.resolve().name)
    calls = options.calls or [("forward", [])]
    sizes: dict[str, Any] = {}
    examples = {method: _example(words, sizes) for method, words in calls}
    if isinstance(model, ExportedProgram):
        if options.calls:
            raise ValueError(f"{options.model} is an exported program, which has its inputs already: omit --input and --method")
        made = export(model, (), folder, name=name, embed=options.embed, force=options.force)
    else:
        scripted = isinstance(model, ScriptModule)
        if not scripted and list(examples) != ["forward"]:
            raise ValueError("--method is for TorchScript archives; a module in Python is exported by its call")
        given: Any = {method: arguments for method, (arguments, _) in examples.items()}
        shapes: Any = {method: shape for method, (_, shape) in examples.items()}
        if not scripted:
            given, shapes = given["forward"], shapes["forward"]
        if not any(any(each) for each in (shapes.values() if scripted else [shapes])):
            shapes = None
        made = export(model, given, folder, name=name, dynamic_shapes=shapes, embed=options.embed, force=options.force)
    print(made)
    if options.library or options.python:
        library = build_library(made, name, options.target)
        print(library)
        if options.python:
            print(build_wheel(made, name, library, options.target))
    if options.static:
        print(build_library(made, name, options.target, "static"))


def _load(text: str, before_python: Callable[[], None]) -> Any:
    """Return the model that a command-line word names."""
    path, _, name = text.rpartition(":")
    if path and not Path(text).exists():
        before_python()
        return _load_from_python(path, name)
    if not Path(text).exists():
        raise FileNotFoundError(f"there is no file {text}; a model in Python is package.module:name or file.py:name")
    if text.endswith(".py"):
        raise ValueError(f"{text} needs the name of a module or function in it, as {text}:NAME")
    if not zipfile.is_zipfile(text):
        raise ValueError(f"{text} is neither a TorchScript archive nor an exported program; neither is a file of weights alone")
    with zipfile.ZipFile(text) as archive:
        is_scripted = any("/code/" in entry or entry.startswith("code/") for entry in archive.namelist())
    return load_archive(text, map_location="cpu") if is_scripted else load_program(text)


def _load_from_python(path: str, name: str) -> Any:
    if path.endswith(".py"):
        spec = importlib.util.spec_from_file_location(Path(path).stem, path)
        if spec is None or spec.loader is None or not Path(path).exists():
            raise FileNotFoundError(f"there is no file {path}")
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        sys.path.insert(0, str(Path(path).resolve().parent))
        spec.loader.exec_module(module)
    else:
        sys.path.insert(0, "")
        module = importlib.import_module(path)
    found = getattr(module, name)
    found = found() if isinstance(found, type) else found
    return found.eval() if isinstance(found, Module) else found


# Inputs


def _example(words: Sequence[str], sizes: dict[str, Any]) -> tuple[tuple, tuple]:
    """Return the example arguments that the words describe, and their open sizes; `sizes` maps names to sizes."""
    arguments, shapes = [], []
    for word in words:
        argument, shape = _parse_input(word, sizes)
        arguments.append(argument)
        shapes.append(shape)
    return tuple(arguments), tuple(shapes)


def _parse_input(word: str, sizes: dict[str, Any]) -> tuple[Any, dict | None]:
    found = _TENSOR.fullmatch(word)
    if found is not None:
        return _make_tensor(found[2], [size.strip() for size in found[3].split(",") if size.strip()], sizes)
    found = _NUMBER.fullmatch(word)
    if found is None:
        raise ValueError(f"an input is NAME:DTYPE[SIZES], as x:float32[1,3], or NAME=VALUE, got {word!r}")
    try:
        return json.loads(found[2]), None
    except json.JSONDecodeError:
        return found[2], None


def _make_tensor(kind: str, words: Sequence[str], sizes: dict[str, Any]) -> tuple[Tensor, dict | None]:
    numbers, opened = [], {}
    for dim, word in enumerate(words):
        if word.isdigit():
            numbers.append(int(word))
            continue
        found = _SIZE.fullmatch(word)
        if found is None:
            raise ValueError(f"a size is a number, a name, or NAME=LEAST..MOST, got {word!r}")
        size = sizes.get(found[1])
        if size is None:
            least, most = int(found[2] or 0), None if found[3] is None else int(found[3])
            if most is not None and most < least:
                raise ValueError(f"the bounds of a size are NAME=LEAST..MOST, got {word!r}, of which nothing is within")
            size = sizes[found[1]] = Dim(found[1], min=least or None, max=most)
        elif found[2] is not None:
            raise ValueError(f"the bounds of {found[1]} stand where it comes first, and again in {word!r}")
        opened[dim] = size
        numbers.append(_example_size(size, dim, list(sizes).index(found[1])))
    return example_tensor(kind, numbers), opened or None


def _example_size(size: Any, dim: int, number: int) -> int:
    """Return an example size within bounds, different for each name."""
    least = max(size.min or 0, _EXAMPLE_SIZES[dim > 0] + number, 2)
    return min(least, size.max) if isinstance(size.max, int) else least
