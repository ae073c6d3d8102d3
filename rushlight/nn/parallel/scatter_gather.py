"""`torch.nn.parallel.scatter_gather`: distribute arguments over devices, of which there is one."""

from __future__ import annotations

from rushlight.core.absent import absent_function

_HINT = "there are no several devices"
scatter = absent_function("torch.nn.parallel.scatter", _HINT)
scatter_kwargs = absent_function("torch.nn.parallel.scatter_kwargs", _HINT)
gather = absent_function("torch.nn.parallel.gather", _HINT)


def is_namedtuple(obj: object) -> bool:
    """Return whether a value is an instance of a `namedtuple` class."""
    return isinstance(obj, tuple) and hasattr(obj, "_asdict") and hasattr(obj, "_fields")
