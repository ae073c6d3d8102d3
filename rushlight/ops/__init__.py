"""Operators: schemas, dispatcher, the primitive table with its CPU and Meta kernels, composites, and Tensor's methods.

`ops.aten` holds the operators; `ops.<name>` those of libraries. Importing this package defines everything: each module in
`cpu`, `meta` and `composite` registers its kernels as it is imported.
"""

from rushlight.core.module_list import import_all
from rushlight.ops import composite, cpu, meta, modes, narrow_dtypes, primitives, views, views_complex
from rushlight.ops.libraries import load_library, loaded_libraries
from rushlight.ops.packet import add_all, namespaces

for _package in (cpu, meta, composite):
    import_all(_package.__name__, _package.__path__)
modes.dispatch_factories_undecomposed()
add_all()


def __getattr__(name: str):
    found = namespaces.__dict__.get(name)
    if found is None:
        raise AttributeError(f"no operator namespace or module {name!r} in rushlight.ops")
    return found


__all__ = [
    "composite", "cpu", "load_library", "loaded_libraries", "meta", "modes", "namespaces", "narrow_dtypes", "primitives",
    "views", "views_complex",
]  # fmt: skip
