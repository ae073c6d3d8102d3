"""Scripted programs in both libraries: the files in `programs/` run as rushlight's and as torch's.

Each top-level function of a file is a program; the comments `#: (arguments)` below it are its calls, as expressions in the file's
own scope. In: a file. Out: what each program returned or raised, and its graph without numbers.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import io
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parent / "programs"


@dataclass
class Program:
    """A function and the calls to make of it."""

    file: str
    name: str
    calls: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.file}-{self.name}"


def programs() -> list[Program]:
    """All programs of all files."""
    return [program for path in sorted(FOLDER.glob("*.py")) for program in _programs_of(path)]


def _programs_of(path: Path) -> list[Program]:
    text = path.read_text()
    lines = text.splitlines()
    found = []
    for node in ast.parse(text).body:
        calls = []
        for line in lines[getattr(node, "end_lineno", len(lines)) :]:
            if not line.startswith("#: "):
                break
            calls.append(line[3:])
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and calls:
            found.append(Program(path.stem, node.name, calls))
    return found


def load(path: Path, library: str, folder: Path):
    """A file of programs as a module in which `torch` is `library`, made once in a process.

    torch knows an enum by its class's name: of a class that is defined again under it, equal members compare as unequal.
    """
    name = f"{library}_{path.stem}"
    if name in sys.modules:
        return sys.modules[name]
    target = folder / f"{name}.py"
    target.write_text(path.read_text().replace("rushlight", library))
    spec = importlib.util.spec_from_file_location(name, target)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def outcomes(module, program: Program, library, keep=lambda scripted: None) -> tuple[str | None, list]:
    """(the normalised graph or None, the outcome of each call): (result, arguments) or the error. `keep` is called with the
    scripted program."""
    library.manual_seed(0)
    target = getattr(module, program.name)
    try:
        if isinstance(target, type):
            target = target().eval()
        scripted = library.jit.script(target)
        graph = plain_graph(str(scripted.graph))
        keep(scripted)
    except Exception as error:
        return None, [("does not compile", first_line(error))]
    return graph, [_outcome(scripted, call, module, library) for call in program.calls]


def _outcome(scripted, call: str, module, library) -> tuple:
    library.manual_seed(1)
    arguments = eval(call, vars(module))
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            result = scripted(*arguments)
    except Exception as error:
        return ("raises", last_line(error))
    return plain(result, library), plain(arguments, library)


def plain(value: object, library) -> object:
    """A result in a form that compares between libraries."""
    if isinstance(value, library.Tensor):
        found = value.detach()
        return ("tensor", str(found.dtype).split(".")[-1], list(found.shape), value.requires_grad, found.tolist())
    if isinstance(value, list | tuple):
        return (type(value).__name__, [plain(item, library) for item in value])
    if isinstance(value, dict):
        return ("dict", [(plain(key, library), plain(item, library)) for key, item in value.items()])
    if isinstance(value, bool | int | float | complex | str) or value is None:
        return (type(value).__name__, value)
    if hasattr(value, "__dict__") and type(value).__module__.split("_")[0] in ("rushlight", "torch"):
        return (type(value).__name__, {name: plain(each, library) for name, each in vars(value).items()})
    return (type(value).__name__, str(value))


def plain_graph(text: str) -> str:
    """A printed graph without numbers of values, source places and the name of the file; constants stand where they are used."""
    text = re.sub(r" # \S.*?:\d+:\d+$", "", text, flags=re.MULTILINE)
    text = "".join(map(_with_constants, re.split(r"^(?=with )", text, flags=re.MULTILINE)))
    text = re.sub(r"__torch__\.(rushlight|torch)_", "__torch__.", text)
    text = re.sub(r"___torch_mangle_\d+\.", "", text)
    names: dict[str, str] = {}

    def renamed(found: re.Match) -> str:
        return names.setdefault(found[0], f"%{len(names)}")

    return re.sub(r"%[\w.]+", renamed, text)


def _with_constants(text: str) -> str:
    """One graph, with its constants where they are used."""
    constants = {}
    for name, kind, value in re.findall(r"^ +(%[\w.]+) : (.*?) = prim::Constant(.*)\(\)$", text, flags=re.MULTILINE):
        constants[name] = f"<{kind} {value}>"
    text = re.sub(r"^ +%[\w.]+ : .*? = prim::Constant.*\(\)\n", "", text, flags=re.MULTILINE)
    return re.sub(r"%[\w.]+", lambda found: constants.get(found[0], found[0]), text)


def first_line(error: Exception) -> str:
    """The message of an error of compilation, without places."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(":") if lines else type(error).__name__


def last_line(error: Exception) -> str:
    """The message of an error of execution."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    return re.sub(r"^((builtins\.)?\w+(Error|Exception): )+", "", lines[-1]).replace("'", "") if lines else type(error).__name__


def same(first: object, second: object) -> bool:
    """Whether two plain outcomes are equal, numbers to fp32 tolerance."""
    if isinstance(first, float | complex) and isinstance(second, float | complex):
        return first == second or (first != first and second != second) or abs(first - second) <= 1e-5 + 1e-4 * abs(second)
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(same(first[key], second[key]) for key in first)
    return type(first) is type(second) and first == second
