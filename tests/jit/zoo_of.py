"""The modules of `archives_zoo.py` for torch or rushlight: the same source runs with either library."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from functools import cache
from pathlib import Path


@cache
def zoo_of(library: str) -> dict[str, Callable]:
    """The module makers of the zoo; skips the test if the library is not installed."""
    path = Path("tests/jit/archives_zoo.py")
    if not path.exists():
        path = Path(__file__).with_name("archives_zoo.py")
    module = types.ModuleType(f"zoo_of_{library}")
    module.__file__, module.LIBRARY = str(path), library
    sys.modules[module.__name__] = module
    exec(compile(path.read_text(), str(path), "exec", dont_inherit=True), module.__dict__)
    return module.ZOO
