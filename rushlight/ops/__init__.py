"""Operators: schemas, dispatcher, the primitive table with its CPU and Meta kernels, composites, and Tensor's methods.

`ops.aten` holds the operators; `ops.<name>` those of libraries. Importing this package defines everything: each module in
`cpu`, `meta` and `composite` registers its kernels as it is imported.
"""

from importlib import import_module
from pkgutil import iter_modules

from rushlight.ops import composite, cpu, meta, modes, primitives, views, views_complex
from rushlight.ops.packet import add_all, namespaces

for _package in (cpu, meta, composite):
    for _module in iter_modules(_package.__path__, _package.__name__ + "."):
        import_module(_module.name)
add_all()


def __getattr__(name: str):
    found = namespaces.__dict__.get(name)
    if found is None:
        raise AttributeError(f"no operator namespace or module {name!r} in rushlight.ops")
    return found


__all__ = ["composite", "cpu", "meta", "modes", "namespaces", "primitives", "views", "views_complex"]
