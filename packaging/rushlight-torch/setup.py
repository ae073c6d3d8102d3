"""Builds the distribution; refuses where it would replace PyTorch."""

import sys
import sysconfig
from pathlib import Path

from setuptools import setup


def installed_pytorch() -> str | None:
    """The folder of an installed distribution `torch` that is not this one."""
    for kind in ("purelib", "platlib"):
        for folder in Path(sysconfig.get_paths()[kind]).glob("torch-*.dist-info"):
            if "+rushlight" not in folder.name:
                return str(folder)
    return None


if (found := installed_pytorch()) is not None:
    sys.exit(
        f"PyTorch is installed here ({found}), and this distribution has its name: it would take PyTorch's place. "
        "Use another environment, or uninstall it first (pip uninstall torch)."
    )
setup()
