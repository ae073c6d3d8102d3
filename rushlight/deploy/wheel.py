"""A Python wheel of an exported model, which needs only NumPy.

In: an exported folder, and its library. Out: a wheel: the package NAME with the library, the weights and a binding by ctypes.
"""

from __future__ import annotations

import base64
import hashlib
import platform
import zipfile
from pathlib import Path

from rushlight.deploy.targets import ALL_LEVELS, X86_LEVELS

BINDING = Path(__file__).with_name("binding.py")
_VERSION = "1.0"
_MACHINES = {"aarch64": "aarch64", **dict.fromkeys((ALL_LEVELS, *X86_LEVELS), "x86_64")}

_INIT = '''\
"""The model {name}: `Model()` makes a handle, whose methods take and give NumPy arrays."""

from pathlib import Path

from {name}.binding import Model as _Model
from {name}.binding import ModelError

__all__ = ["Model", "ModelError"]
_HERE = Path(__file__).parent


class Model(_Model):
    """A handle of the model, with a state of its own."""

    def __init__(self):
        super().__init__(_HERE / "{library}", "{name}", {weights})
'''


def build_wheel(folder: Path, name: str, library: Path, target: str = "native") -> Path:
    """Write the wheel of a model beside its library, built for `target`; returns its path."""
    machine = _MACHINES.get(target, platform.machine())
    tag = f"py3-none-linux_{machine}"
    weights = folder / f"{name}.weights"
    is_embedded = (folder / f"{name}_weights.S").exists()
    init = _INIT.format(name=name, library=library.name, weights="None" if is_embedded else f'_HERE / "{weights.name}"')
    files = {f"{name}/__init__.py": init.encode(), f"{name}/binding.py": BINDING.read_bytes()}
    files[f"{name}/{library.name}"] = library.read_bytes()
    if not is_embedded:
        files[f"{name}/{weights.name}"] = weights.read_bytes()
    info = f"{name}-{_VERSION}.dist-info"
    about = f"Metadata-Version: 2.1\nName: {name}\nVersion: {_VERSION}\nSummary: The model {name}\nRequires-Dist: numpy\n"
    files[f"{info}/METADATA"] = about.encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: rushlight\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    record = "".join(f"{path},{_hash(content)},{len(content)}\n" for path, content in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    wheel = folder / f"{name}-{_VERSION}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return wheel


def _hash(content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"sha256={digest}"
