"""`load` and `load_inline`: build an extension and import it, with the interface of torch.utils.cpp_extension."""

from __future__ import annotations

import ctypes
import importlib.machinery
import importlib.util
import re
import sys
import threading
import types
from collections.abc import Mapping, Sequence
from pathlib import Path

from rushlight.utils.cpp_extension.build import Job, copy_to, library_of

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_imported: dict[str, types.ModuleType] = {}
_lock = threading.RLock()


def load_inline(
    name: str,
    cpp_sources: str | Sequence[str],
    cuda_sources: str | Sequence[str] | None = None,
    sycl_sources: str | Sequence[str] | None = None,
    functions: str | Sequence[str] | Mapping[str, str] | None = None,
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_sycl_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: str | Sequence[str] | None = None,
    build_directory: str | None = None,
    verbose: bool = False,
    with_cuda: bool | None = None,
    with_sycl: bool | None = None,
    is_python_module: bool = True,
    with_pytorch_error_handling: bool = True,
    keep_intermediates: bool = True,
    use_pch: bool = False,
    no_implicit_headers: bool = False,
) -> types.ModuleType | str:
    """Return the module `name`, built from C++ texts, which are one source after `#include <torch/extension.h>`.

    `functions` names C++ functions that become the module's: a name, names, or a mapping of names to documentation. Without it
    the texts bind functions themselves (`PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f); }`). With
    `is_python_module=False` the texts only register operators (`TORCH_LIBRARY`), and the library's path is returned.
    `build_directory` gets copies of the source and of the library. The other parameters have no effect here.

    ValueError for a name that is no identifier, TypeError for sources that are no text, RuntimeError for CUDA and SYCL,
    BuildError (a RuntimeError) with the compiler's message, CompilerMissing where there is no compiler.
    """
    _refuse_devices(cuda_sources, sycl_sources, with_cuda, with_sycl)
    parts = [] if no_implicit_headers else ["#include <torch/extension.h>"]
    parts += _check_texts("cpp_sources", cpp_sources)
    if functions is not None:
        parts.append(_bindings(functions))
    job = _make_job(name, [("main.cpp", "\n".join(parts) + "\n")], extra_cflags, extra_ldflags, extra_include_paths, verbose)
    return _load(job, is_python_module, build_directory)


def load(
    name: str,
    sources: str | Path | Sequence[str | Path],
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_sycl_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: str | Sequence[str] | None = None,
    build_directory: str | None = None,
    verbose: bool = False,
    with_cuda: bool | None = None,
    with_sycl: bool | None = None,
    is_python_module: bool = True,
    is_standalone: bool = False,
    keep_intermediates: bool = True,
) -> types.ModuleType | str:
    """Return the module `name`, built from C++ files, which are compiled side by side. Otherwise like `load_inline`.

    It is built again when a source, or a header that it includes, has changed. FileNotFoundError for sources that do not exist.
    """
    paths = [Path(path).absolute() for path in ([sources] if isinstance(sources, str | Path) else sources)]
    cuda = [str(path) for path in paths if path.suffix in (".cu", ".sycl")]
    _refuse_devices(cuda, None, with_cuda, with_sycl)
    if is_standalone:
        raise RuntimeError("load: is_standalone is not supported: extensions are libraries here")
    given = [(str(path), path.read_text()) for path in paths]
    job = _make_job(name, given, extra_cflags, extra_ldflags, extra_include_paths, verbose)
    return _load(job, is_python_module, build_directory)


def _refuse_devices(cuda: object, sycl: object, with_cuda: bool | None, with_sycl: bool | None) -> None:
    if cuda or with_cuda:
        raise RuntimeError("CUDA sources cannot be built: extensions are for the CPU here")
    if sycl or with_sycl:
        raise RuntimeError("SYCL sources cannot be built: extensions are for the CPU here")


def _check_texts(what: str, given: str | Sequence[str]) -> list[str]:
    texts = [given] if isinstance(given, str) else list(given)
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"{what} must be a str or a list of str, got {type(text).__name__}")
    return texts


def _bindings(functions: str | Sequence[str] | Mapping[str, str]) -> str:
    """Return the C++ text that binds functions to the module."""
    if isinstance(functions, str):
        functions = [functions]
    if not isinstance(functions, Mapping):
        functions = {function: function for function in functions}
    lines = ["PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {"]
    for function, doc in functions.items():
        if not isinstance(function, str) or not re.fullmatch(r"[A-Za-z_][\w:]*", function):
            raise ValueError(f"functions must name C++ functions, got {function!r}")
        lines.append(f'  m.def("{function.rpartition(":")[2]}", &{function}, {_string_literal(str(doc))});')
    return "\n".join([*lines, "}"])


def _string_literal(text: str) -> str:
    """Return a C++ string literal; special bytes are escaped numerically."""
    return '"' + "".join(chr(byte) if chr(byte).isalnum() or byte == 32 else f"\\{byte:03o}" for byte in text.encode()) + '"'


def _make_job(name: str, sources: list[tuple[str, str]], cflags, ldflags, include_paths, verbose: bool) -> Job:
    if not isinstance(name, str) or not _IDENTIFIER.fullmatch(name):
        raise ValueError(f"an extension's name must be an identifier, since C++ code uses it; got {name!r}")
    if not sources:
        raise ValueError(f"the extension {name!r} has no sources")
    paths = [include_paths] if isinstance(include_paths, str) else list(include_paths or ())
    return Job(name, tuple(sources), _as_texts(cflags), _as_texts(ldflags), _as_texts(paths), bool(verbose))


def _as_texts(given: Sequence[str] | None) -> tuple[str, ...]:
    return tuple(str(item) for item in ([given] if isinstance(given, str) else given or ()))


def _load(job: Job, is_python_module: bool, build_directory: str | None) -> types.ModuleType | str:
    with _lock:
        other = sys.modules.get(job.name)
        load_one = _import_library if is_python_module else _register_library
        loaded, path = library_of(job, lambda library: load_one(job.name, library))
        if other is not None and other is not _imported.get(job.name):
            sys.modules[job.name] = other  # the import has registered the extension there
        elif is_python_module:
            sys.modules[job.name] = _imported[job.name] = loaded
    if build_directory is not None:
        copy_to(build_directory, job.name, path)
    return loaded


def _import_library(name: str, path: Path) -> types.ModuleType:
    """Import the module in a library; OSError if it cannot be loaded, and any exception of its initialisation."""
    _open(path)
    loader = importlib.machinery.ExtensionFileLoader(name, str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_file_location(name, path, loader=loader))
    loader.exec_module(module)
    return module


def _register_library(name: str, path: Path) -> str:
    """Load a library for the operators that it registers."""
    library = _open(path)
    register = getattr(library, "rushlight_register_libraries", None)
    if register is not None and register() != 0:  # unreachable: a PyDLL raises the pending exception
        raise RuntimeError(f"the operators of {name} could not be registered")
    return str(path)


def _open(path: Path) -> ctypes.PyDLL:
    """Open the library. OSError means that the cache folder is unusable; ImportError would mean that its content is."""
    try:
        return ctypes.PyDLL(str(path))
    except OSError as error:
        if "undefined symbol" in str(error):
            raise ImportError(f"the extension cannot be loaded: {error}") from None
        raise
