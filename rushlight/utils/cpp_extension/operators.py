"""Register operators that C++ libraries declare with `TORCH_LIBRARY`. Called by <rushlight/extension/library.h>."""

from __future__ import annotations

import threading
from collections.abc import Callable

from rushlight.ops.dispatcher import OpOverload, find_operator
from rushlight.ops.library import Library

_libraries: list[Library] = []  # kept alive as long as the process, like the code
_lock = threading.Lock()

# PyTorch's keys that are a single key here.
_KEYS = {"AutogradCPU": "Autograd", "CatchAll": "CompositeImplicitAutograd"}


def register(kind: str, namespace: str, schemas: list[str], kernels: list[tuple[str, str, Callable]]) -> None:
    """Define operators and add their kernels, `(operator, key, function)`; on an error, undo everything and raise."""
    library = Library(namespace, kind)
    try:
        for schema in schemas:
            library.define(schema.rpartition("::")[2] if "::" in schema.partition("(")[0] else schema)
        for name, key, function in kernels:
            if key.endswith("CUDA"):
                continue  # kernels for devices that do not exist here
            op = _find(namespace, name)
            library.impl(op, _kernel(op, function), _KEYS.get(key, key))
    except BaseException:
        library._destroy()
        raise
    with _lock:
        _libraries.append(library)


def _find(namespace: str, name: str) -> OpOverload:
    plain, _, overload = name.rpartition("::")[2].partition(".")
    return find_operator(f"{namespace}::{plain}", overload)


def _kernel(op: OpOverload, function: Callable) -> Callable:
    """Adapt `function`, which takes all arguments by position, to calls with defaults and keywords."""
    count = len(op._schema.arguments)

    def kernel(*args, **kwargs):
        if kwargs or len(args) != count:
            args = op.normalize(args, kwargs)
        return function(*args)

    return kernel
