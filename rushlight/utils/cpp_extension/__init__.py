"""Extensions in C++: sources over tensors, built on demand, and loaded as Python modules or as operators.

In: C++ text or files that include <rushlight/extension.h>, or, as for PyTorch, <torch/extension.h>. Out: a module with the
functions that they bind, or operators under `torch.ops`. Built libraries are kept in the cache of compiled code.
"""

from __future__ import annotations

from rushlight.utils.cpp_extension.build import INCLUDE, include_paths
from rushlight.utils.cpp_extension.load import load, load_inline
from rushlight.utils.native.toolchain import BuildError, CompilerMissing

__all__ = ["INCLUDE", "BuildError", "CompilerMissing", "include_paths", "load", "load_inline"]
