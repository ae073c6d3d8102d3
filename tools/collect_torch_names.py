"""The public names of PyTorch, for `docs/compatibility.md`: `python tools/collect_torch_names.py > tools/torch_names.json`.

In: an installed PyTorch. Out: JSON, module by module: {"torch.nn": {"Linear": "class (in_features, ...)"}}, that is each name's
kind and, for functions and classes in Python, its parameters. Public are the modules whose path has no part with an underscore,
and in them what `__all__` lists, or else what is defined there, or in a module below, and has no underscore. The methods of
Tensor are listed under "torch.Tensor".
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import json
import pkgutil
import sys
import warnings

LEFT_OUT = (
    "torch.testing._internal", "torch.utils.benchmark.examples", "torch.utils.tensorboard", "torch.contrib",
    "torch.utils.bottleneck", "torch.distributed.benchmarks", "torch.include", "torch.bin", "torch.lib", "torch.share",
    "torch.test",
)  # fmt: skip


def modules() -> list[str]:
    """The public modules that can be imported."""
    import torch

    found = ["torch"]
    for each in pkgutil.walk_packages(torch.__path__, "torch.", onerror=lambda _: None):
        if not any(part.startswith("_") for part in each.name.split(".")) and not each.name.startswith(LEFT_OUT):
            found.append(each.name)
    return sorted(found)


def names(name: str) -> dict[str, str]:
    """The public names of a module and their kinds; empty for a module that this machine cannot import."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            module = importlib.import_module(name)
        except BaseException:  # what an import of PyTorch's raises on a machine without its requirements
            return {}
    listed = getattr(module, "__all__", None)
    if listed is None:
        listed = [key for key, value in vars(module).items() if not key.startswith("_") and _is_from(value, name)]
    return {key: _kind(getattr(module, key)) for key in sorted(set(listed)) if hasattr(module, key)}


def _is_from(value: object, name: str) -> bool:
    if inspect.ismodule(value):
        return False
    home = getattr(value, "__module__", None)
    return f"{home}.".startswith((f"{name}.", "torch._C.")) or (home is None and name == "torch")


def _kind(value: object) -> str:
    if inspect.ismodule(value):
        return "module"
    if not callable(value):
        return "value"
    kind = "class" if isinstance(value, type) else "function"
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return kind
    texts = [
        "*" * (each.kind == each.VAR_POSITIONAL) + "**" * (each.kind == each.VAR_KEYWORD) + each.name for each in parameters
    ]
    return f"{kind} ({', '.join(texts)})"


if __name__ == "__main__":
    import torch

    found = {name: entries for name in modules() if (entries := names(name))}
    found["torch.Tensor"] = {name: _kind(getattr(torch.Tensor, name)) for name in dir(torch.Tensor) if not name.startswith("_")}
    json.dump(found, sys.stdout, indent=0, sort_keys=True)
