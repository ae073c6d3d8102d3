"""The programs of tests/jit as cases of the survey: those of `programs/`, and what else tests script and call.

`SURVEY_CASES=FOLDER python -m pytest -p tests.deploy.survey_programs tests/jit` writes one folder for each program that tests call, with the
arguments of its first call that gives a result. Programs with the same code are written once.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import io
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import rushlight
from rushlight.jit.module import ScriptMethod, ScriptModule
from rushlight.jit.script_function import ScriptFunction
from tests.deploy.survey_cases import write_case
from tests.jit import differential

_MOST_SEEN = 3  # calls tried per program until one can be written


def write_corpus(folder: Path) -> Iterator[Path]:
    """Write each program of tests/jit/programs that compiles and has a call which gives a result."""
    with tempfile.TemporaryDirectory() as made:
        modules = {
            path.stem: differential.load(path, "rushlight", Path(made)) for path in sorted(differential.FOLDER.glob("*.py"))
        }
        for program in differential.programs():
            case = folder / str(program)
            try:
                _write_program(case, program, modules[program.file])
            except Exception:  # a program that can't be scripted, called or saved is no case
                shutil.rmtree(case, ignore_errors=True)
            else:
                yield case


def _write_program(case: Path, program: differential.Program, module: object) -> None:
    target = getattr(module, program.name)
    rushlight.manual_seed(0)
    scripted = rushlight.jit.script(target().eval() if isinstance(target, type) else target)
    for call in program.calls:
        rushlight.manual_seed(1)
        arguments = eval(call, vars(module))
        with contextlib.suppress(Exception), contextlib.redirect_stdout(io.StringIO()):
            scripted(*copy.deepcopy(arguments))
            write_case(case, scripted, arguments)
            return
    raise RuntimeError("no call gives a result")


class _Collector:
    def __init__(self, folder: Path):
        self.folder = folder
        self.seen: dict[str, int] = {}
        self.is_busy = False

    def call(self, program: ScriptFunction | ScriptModule, code: str, arguments: tuple, run: Callable) -> object:
        """The result of a call; also writes the call as a case."""
        key = hashlib.sha256(code.encode()).hexdigest()[:12]
        if self.is_busy or self.seen.get(key, 0) >= _MOST_SEEN:
            return run()
        self.is_busy = True
        test = os.environ.get("PYTEST_CURRENT_TEST", "").partition("::")[2].partition(" ")[0]
        name = "".join(char if char.isalnum() else "_" for char in test)[:80] + "_" + key
        case = self.folder / name
        try:
            self.seen[key] = self.seen.get(key, 0) + 1
            write_case(case, program, copy.deepcopy(arguments))
            self.seen[key] = _MOST_SEEN
        except Exception:  # a value that can't be saved is no case
            shutil.rmtree(case, ignore_errors=True)
        try:
            return run()
        except BaseException:
            shutil.rmtree(case, ignore_errors=True)
            raise
        finally:
            self.is_busy = False


def pytest_configure(config) -> None:
    """Hooks calls of scripted functions and of modules' `forward`, so that they are written as cases."""
    folder = os.environ.get("SURVEY_CASES")
    if not folder:
        return
    collector = _Collector(Path(folder))
    call_function, call_module = ScriptFunction.__call__, ScriptModule.__call__

    def function(self, *args, **kwargs):
        if kwargs or isinstance(self, ScriptMethod):
            return call_function(self, *args, **kwargs)
        return collector.call(self, str(self._function.graph), args, lambda: call_function(self, *args))

    def module(self, *args, **kwargs):
        if kwargs or self._c.type.find_method("forward") is None:
            return call_module(self, *args, **kwargs)
        code = str(self._c.type.find_method("forward").graph)
        return collector.call(self, code, args, lambda: call_module(self, *args))

    ScriptFunction.__call__, ScriptModule.__call__ = function, module
