"""What `import rushlight` imports, and what it leaves until it is asked for."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight as rl

# Packages that take long to import, and those of the library's own that not every program needs.
HEAVY = (
    "concurrent.futures", "asyncio", "logging", "multiprocessing", "numpy.polynomial", "numpy.random", "safetensors",
    "scipy", "subprocess", "tempfile", "torch", "unittest", "urllib.parse", "zipfile",
)  # fmt: skip
OWN = tuple(f"rushlight.{name}" for name in ("compiler", "dynamo", "fx", "inductor", "nn", "optim", "serialization", "utils.data"))


def run(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_import_leaves_heavy_modules_out():
    imported = run("import sys, rushlight; print(*sys.modules)").split()
    assert "rushlight.ops" in imported
    assert not set(HEAVY + OWN) & set(imported)


def test_importing_and_naming_a_package_both_work():
    program = """
import sys, threading
import rushlight as torch
assert "rushlight.nn" not in sys.modules and {"nn", "save", "add"} <= set(dir(torch))
found = []
threads = [threading.Thread(target=lambda: found.append(torch.nn.Linear)) for _ in range(4)]
[thread.start() for thread in threads], [thread.join() for thread in threads]
import rushlight.nn
from rushlight import compile, optim, save
from rushlight.nn import functional
assert found == [torch.nn.Linear] * 4 and torch.nn is rushlight.nn and functional is torch.nn.functional
assert torch.save is save is torch.serialization.save and vars(torch)["save"] is save
assert compile is torch.compile is torch.compiler.compile and torch.optim is optim
print("done")
"""
    assert run(program) == "done\n"


def test_a_star_import_gives_what_comes_later_too():
    assert {"Tensor", "add", "nn", "save"} <= set(rl.__all__)
    scope: dict = {}
    exec("from rushlight import *", scope)
    assert scope["nn"] is rl.nn and scope["save"] is rl.save and scope["softmax"] is rl.softmax


def test_a_module_compiles_without_the_compiler_being_named():
    program = """
import rushlight as torch
layer = torch.nn.Linear(2, 2)
layer.compile(backend="eager")
with torch.no_grad():
    print(tuple(layer(torch.ones(1, 2)).shape))
"""
    assert run(program) == "(1, 2)\n"


# What traces, rewrites, profiles and checks programs, which compiling one does without; and what the C++ compiler needs.
NOT_TO_COMPILE = (
    "rushlight.compiler.kernel_profile", "rushlight.compiler.verify", "rushlight.fx.packages", "rushlight.fx.subgraph_rewriter",
    "rushlight.fx.tracer", "rushlight.fx.transformer", "rushlight.inductor.artifacts", "rushlight.inductor.codegen",
    "rushlight.inductor.lowering", "rushlight.inductor.profiling", "fcntl", "shutil", "signal", "subprocess",
)  # fmt: skip


def test_compile_leaves_out_what_a_compiled_program_does_not_need():
    imported = run("import sys, rushlight; rushlight.compile(lambda x: x); print(*sys.modules)").split()
    assert "rushlight.inductor.compiled" in imported
    assert not set(NOT_TO_COMPILE) & set(imported)


@pytest.mark.parametrize(("package", "names", "module"), [
    ("fx", "Match PH Proxy TraceError Tracer Transformer make_fx replace_pattern symbolic_trace wrap", "tracer"),
    ("compiler", "CacheInfo CompiledResultDiffers load_cache_artifacts profile save_cache_artifacts", "verify"),
])  # fmt: skip
def test_a_package_has_the_names_of_modules_that_are_imported_later(package, names, module):
    program = f"""
import sys, rushlight as torch
from rushlight import {package} as package
names = {names.split()}
assert {{*names, {module!r}}} <= set(dir(package)) and set(names) <= set(package.__all__)
assert not set(names) & set(vars(package)) and f"rushlight.{package}.{module}" not in sys.modules
scope = {{}}
exec("from rushlight.{package} import *", scope)
assert all(scope[name] is getattr(package, name) is vars(package)[name] for name in names)
assert package.{module} is sys.modules["rushlight.{package}.{module}"]
print("done")
"""
    assert run(program) == "done\n"


def test_a_profile_is_a_class_however_its_module_was_imported():
    program = "import rushlight.compiler.kernel_profile as m, rushlight as torch; print(torch.compiler.profile is m.profile)"
    assert run(program) == "True\n"


def test_a_name_that_is_nowhere_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'rushlight' has no attribute 'nothing'"):
        rl.nothing  # noqa: B018
    with pytest.raises(AttributeError, match="module 'rushlight.fx' has no attribute 'nothing'"):
        rl.fx.nothing  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        rl.return_types.nothing  # noqa: B018


def test_no_module_of_the_library_imports_its_facade():
    """What they need is in the module that defines it; the facade would close a circle."""
    package = Path(rl.__file__).parent
    extensions = {"_C", "_kernels"}
    found = []
    above = package / "as_torch"  # which stands above the facade
    for path in sorted(set(package.rglob("*.py")) - set(above.rglob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text())):
            names = {alias.name for alias in getattr(node, "names", ()) if isinstance(alias, ast.alias)}
            facade = isinstance(node, ast.Import) and "rushlight" in names
            if isinstance(node, ast.ImportFrom) and node.module == "rushlight" and node.level == 0:
                modules = {name for name in names if any(package.glob(f"{name}.py")) or (package / name).is_dir()}
                facade = bool(names - extensions - modules)
            if facade:
                found.append(f"{path.relative_to(package)}:{node.lineno}")
    assert not found, found
