"""Write a GraphModule as a Python package on disk, which runs without its graph.

In: a module and a folder. Out: `module.py` with the generated `forward`, `__init__.py`, the state dict, and pickled submodules.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

from rushlight.core.lazy_module import LazyModule
from rushlight.core.tensor import Tensor
from rushlight.nn.parameter import Parameter

serialization = LazyModule("rushlight.serialization")
_TEMPLATE = '''"""Written by GraphModule.to_folder."""

import pickle
from pathlib import Path

import rushlight as torch
from rushlight import inf, nan, device
{imports}
_FOLDER = Path(__file__).parent


class {name}(torch.nn.Module):
    def __init__(self):
        super().__init__()
{members}
        self.load_state_dict(torch.load(_FOLDER / "state_dict.pt"))

{forward}
'''


def write_package(module: Any, folder: Path, name: str) -> None:
    """Write the files. RuntimeError if the code calls something that no import statement reaches."""
    if not name.isidentifier():
        raise ValueError(f"to_folder: the module's name must be a Python identifier, got {name!r}")
    folder.mkdir(parents=True, exist_ok=True)
    code = module.recompile()
    members = [_submodule(folder, path, child) for path, child in module.named_children()]
    tensors = {**module._parameters, **module._buffers}
    members += [_tensor(path, tensor) for path, tensor in tensors.items() if tensor is not None]
    imports = _imports(code.globals)
    forward = "\n".join("    " + line if line else "" for line in code.src.splitlines())
    body = "\n".join("        " + line for line in members) or "        pass"
    (folder / "module.py").write_text(_TEMPLATE.format(name=name, imports=imports, members=body, forward=forward))
    (folder / "__init__.py").write_text(f"from .module import {name}\n")
    serialization.save(module.state_dict(), folder / "state_dict.pt")


def _submodule(folder: Path, path: str, child: Any) -> str:
    (folder / f"{path}.pickle").write_bytes(pickle.dumps(child))
    return f'setattr(self, {path!r}, pickle.loads((_FOLDER / "{path}.pickle").read_bytes()))'


def _tensor(path: str, tensor: Tensor) -> str:
    empty = f"torch.empty({list(tensor.shape)}, dtype={tensor.dtype})"
    if isinstance(tensor, Parameter):
        return f"self.{path} = torch.nn.Parameter({empty}, requires_grad={tensor.requires_grad})"
    return f'self.register_buffer("{path}", {empty})'


def _imports(names: dict[str, Any]) -> str:
    lines = []
    for name, value in names.items():
        if name in ("torch", "inf", "nan", "device") or name.startswith("__"):
            continue
        owner, attribute = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
        if owner in (None, "__main__") or attribute is None or not attribute.isidentifier():
            raise RuntimeError(f"to_folder: the code uses {value!r}, which no import statement reaches")
        lines.append(f"from {owner} import {attribute} as {name}")
    return "\n".join(lines)
