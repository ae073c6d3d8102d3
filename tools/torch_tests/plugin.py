"""A plugin of pytest: `torch` is the library under test, the tests' helpers come from PyTorch's source, results go to a file.

Environment: TORCH_TESTS_LIBRARY (rushlight or torch), TORCH_TESTS_SOURCE (the unpacked source), TORCH_TESTS_RESULTS (a file to
append to), TORCH_TESTS_LIMIT (seconds for one test) and TORCH_TESTS_OF (one of how many tests runs).
"""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import re
import signal
import sys
import zlib
from pathlib import Path

import pytest

from tools.torch_tests import names

_SOURCE = Path(os.environ["TORCH_TESTS_SOURCE"])
_LIMIT = int(os.environ["TORCH_TESTS_LIMIT"])
_ONE_OF = int(os.environ["TORCH_TESTS_OF"])


def _alias() -> None:
    prefix = os.environ["TORCH_TESTS_LIBRARY"]
    if prefix == "rushlight":
        importlib.import_module("rushlight.as_torch")
    import torch
    import torch._inductor.config
    import torch.fx.experimental.proxy_tensor
    import torch.testing

    torch.testing.__path__ = [str(_SOURCE / "torch" / "testing")]
    for name in [name for name in sys.modules if any(name.startswith(helper) for helper in names.HELPERS)]:
        if prefix == "torch" and name.count(".") < 2:
            continue
        del sys.modules[name]
    names.TolerantModule.source = str(_SOURCE)
    helpers = ("testing/", "_dynamo/test_case.py", "_dynamo/testing.py", "_inductor/test_case.py")
    names.TolerantModule.helpers = tuple(f"{_SOURCE}/torch/{place}" for place in helpers)
    names.make_tolerant(prefix)
    if prefix == "rushlight":
        names.tolerate(type(torch.ops.aten))
        names.tolerate(type(torch._inductor.config))
        for place in ("_dynamo", "_inductor", "_functorch"):
            names.keep_settings(importlib.import_module(f"torch.{place}.config"), _SOURCE / "torch" / place / "config.py")
    sys.meta_path[:0] = [names.HelperFinder(_SOURCE), names.TolerantFinder(prefix)]
    _unrefused(sys.meta_path)
    sys.meta_path.append(names.AbsentFinder())
    if prefix == "rushlight":
        names.resolve_annotations(torch.nn.functional)
        for name, added in names.ADDED.items():
            vars(importlib.import_module(name)).update(added)
        names.STAND_INS["torch._functorch.deprecated"] = {
            name: getattr(torch.func, name) for name in torch.func.__all__ if hasattr(torch.func, name)
        }
        names.STAND_INS["torch._functorch.python_key"] = {"make_fx": torch.fx.experimental.proxy_tensor.make_fx}
        replace = torch.func.replace_all_batch_norm_modules_
        names.STAND_INS["torch._functorch.batch_norm_replacement"] = {"replace_all_batch_norm_modules_": replace}
        load = torch.ops.load_library
        torch.ops.load_library = lambda path: None if "libtorchbind_test" in str(path) else load(path)
        torch._dynamo.__path__ = [*torch._dynamo.__path__]
        vars(torch._dynamo).pop("testing")
    for name in ("torch.testing._utils", *(["torch._inductor.metrics"] if prefix == "rushlight" else [])):
        importlib.import_module(name)
    vars(torch).pop("_foreach_zero", None)  # the helpers take its absence for granted
    if "none" not in torch.backends.quantized.supported_engines:
        others = torch._C._supported_qengines
        torch._C._supported_qengines = lambda: [0, *others()]
    _fork_ranks()


def _unrefused(finders: list) -> None:
    """Under the name torch, Rushlight's finder raises for what is missing: have it go on to the next finder instead."""
    for finder in finders:
        if type(finder).__module__ == "rushlight.as_torch.finder":
            found = finder.find_spec

            def find_spec(name, path=None, target=None, found=found):
                try:
                    return found(name, path, target)
                except ModuleNotFoundError:
                    if not names.tolerant and name not in names.STAND_INS:
                        raise
                    return None

            finder.find_spec = find_spec


def _fork_ranks() -> None:
    """Have tests of several processes fork their ranks, which then need not import the library and the helpers anew.

    They ask for new interpreters, because of CUDA; those would not know which library is under test, either.
    """
    import torch.distributed
    import torch.multiprocessing

    if not hasattr(torch.distributed.Backend, "register_backend"):  # the helpers register one of threads
        torch.distributed.Backend.register_backend = lambda *_, **__: None
    given = torch.multiprocessing.get_context
    torch.multiprocessing.get_context = lambda method=None: given("fork" if method == "spawn" else method)


_alias()


class _TooLong(BaseException):
    pass


def _stop(*_: object) -> None:
    raise _TooLong(f"took longer than {_LIMIT} s")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item, nextitem):
    names.tolerant = False
    yield
    names.tolerant = True


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    signal.signal(signal.SIGALRM, _stop)
    signal.alarm(_LIMIT)
    yield
    signal.alarm(0)


_started: dict[str, dict] = {}

_RANK_FAILED = re.compile(r"Process (\d+) exited with error code 10 and exception:\n|Thread (\d+) exited with exception:\n")
_LINE = re.compile(r'File "([^"]+)", line (\d+)')


def _end_ranks() -> None:
    """Kill the processes that a test has left."""
    for process in multiprocessing.active_children():
        process.kill()
        process.join()


def _of_rank(text: str) -> tuple[str, str] | None:
    """The last error that a rank reports in an error of the test, and the lines that it went through."""
    parts = _RANK_FAILED.split(text)
    if len(parts) < 4:
        return None
    reports = [report for report in parts[3::3] if "Connection" not in report] or parts[3::3]
    trace, _, error = reports[0].rstrip().rpartition('  File "')
    error = "\n".join(line for line in error.splitlines()[1:] if not line.startswith(" ")) or error
    return error, " ".join(f"{Path(file).name}:{line}" for file, line in _LINE.findall(reports[0])[-6:])


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    result = _started.setdefault(item.nodeid, {"test": item.nodeid.split("::", 1)[1], "outcome": "passed", "seconds": 0.0})
    result["seconds"] += report.duration
    if report.failed:
        error = call.excinfo
        result["outcome"] = "failed"
        result["error"] = f"{error.typename}: {str(error.value)[:600]}"
        result["where"] = _where(error)
        result["statement"] = _statement(error)
        result["generated"] = "EXPECTTEST_ACCEPT" in str(error.value)
        of_rank = _of_rank(str(error.value))
        if of_rank is not None:
            result["error"], result["where"] = of_rank[0][:600], of_rank[1]
    elif report.skipped and result["outcome"] == "passed":
        result["outcome"] = "xfailed" if hasattr(report, "wasxfail") else "skipped"
    if report.when == "teardown":
        _end_ranks()
        with open(os.environ["TORCH_TESTS_RESULTS"], "a") as file:
            file.write(json.dumps(_started.pop(item.nodeid)) + "\n")


def _where(error) -> str:
    """The last lines of the test, of its helpers and of the library that the error went through."""
    lines = [f"{Path(str(entry.path)).name}:{entry.lineno + 1}" for entry in error.traceback]
    return " ".join(lines[-6:])


def _statement(error) -> str:
    """The statement of the test, or of `torch._dynamo.testing`, in which the error came up."""
    own = [entry for entry in error.traceback if str(entry.path).startswith((f"{_SOURCE}/test/", f"{_SOURCE}/torch/_dynamo/"))]
    return " ".join(str(own[-1].statement).split())[:600] if own else ""


def pytest_collection_modifyitems(items):
    """Leave out tests beyond the share that was asked for, the same ones for both libraries, and a hook of test classes that
    tests PyTorch's guards: its arguments differ between versions of PyTorch."""
    items[:] = [item for item in items if zlib.crc32(item.nodeid.split("::", 1)[1].encode()) % _ONE_OF == 0]
    items.sort(key=lambda item: not hasattr(item.cls, "_spawn_processes"))  # ranks are not forked from what has become one
    for item in items:
        if hasattr(item.cls, "guard_manager_clone_hook_fn"):
            item.cls.guard_manager_clone_hook_fn = lambda self, *arguments: None
