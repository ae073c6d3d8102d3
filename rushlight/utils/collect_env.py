"""`torch.utils.collect_env`: the facts about a machine for bug reports; as a program, it prints them."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import sys
from typing import NamedTuple

from rushlight.backends.cpu import get_cpu_capability
from rushlight.core.parallel import get_num_threads
from rushlight.version import __version__

_PACKAGES = ("numpy", "ml_dtypes", "safetensors", "bytecode", "scipy", "onnx", "transformers", "timm", "torch")


class SystemEnv(NamedTuple):
    """The library, Python, the system, the processor, and related packages."""

    torch_version: str
    is_debug_build: str
    cuda_compiled_version: str
    os: str
    libc_version: str
    python_version: str
    python_platform: str
    cpu_info: str
    compiler: str
    pip_packages: str
    is_cuda_available: str = "False"


def _package_version(name: str) -> str | None:
    try:
        return f"{name}=={importlib.metadata.version(name)}"
    except importlib.metadata.PackageNotFoundError:
        return None


def get_env_info() -> SystemEnv:
    """Collect the facts about this machine."""
    found = [name for name in map(_package_version, _PACKAGES) if name is not None]
    return SystemEnv(
        torch_version=f"{__version__} (Rushlight)", is_debug_build="False", cuda_compiled_version="None",
        os=f"{platform.system()} {platform.release()} ({platform.machine()})", libc_version="-".join(platform.libc_ver()),
        python_version=sys.version.replace("\n", " "), python_platform=platform.platform(),
        cpu_info=f"{os.cpu_count()} processors, {get_cpu_capability()}, {get_num_threads()} threads",
        compiler=os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++") or "none",
        pip_packages="\n".join(found),
    )  # fmt: skip


def pretty_str(envinfo: SystemEnv) -> str:
    """Return the facts as text."""
    return "\n".join(f"{name.replace('_', ' ')}: {value}" for name, value in envinfo._asdict().items()) + "\n"


def get_pretty_env_info() -> str:
    """Return `pretty_str` of `get_env_info`."""
    return pretty_str(get_env_info())


def main() -> None:
    """Print it."""
    print("Collecting environment information...")
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
