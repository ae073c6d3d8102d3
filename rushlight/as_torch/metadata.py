"""What `importlib.metadata` says of the distribution `torch` while `torch` is Rushlight.

The version that is claimed is one setting: the variable RUSHLIGHT_TORCH_VERSION, or `CLAIMED`, the version of PyTorch whose
behaviour the library is compared with.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from importlib.metadata import Distribution, DistributionFinder
from pathlib import Path

CLAIMED = "2.13.0+rushlight"


def claimed_version() -> str:
    """The version of PyTorch that this process claims to be. ValueError: the variable holds no version."""
    text = os.environ.get("RUSHLIGHT_TORCH_VERSION", CLAIMED)
    if not re.fullmatch(r"\d+\.\d+\.\d+(\+[\w.]+)?", text):
        raise ValueError(f"RUSHLIGHT_TORCH_VERSION must be a version such as {CLAIMED}, not {text!r}")
    return text


class _Torch(Distribution):
    """The distribution `torch`."""

    def read_text(self, filename: str) -> str | None:
        """One of its files of metadata; None for those that it does not have."""
        if filename in ("METADATA", "PKG-INFO"):
            return (
                f"Metadata-Version: 2.1\nName: torch\nVersion: {claimed_version()}\nSummary: Rushlight under the name torch\n"
            )
        return {"top_level.txt": "torch\n", "INSTALLER": "rushlight\n", "RECORD": ""}.get(filename)

    def locate_file(self, path: str | os.PathLike) -> Path:
        """Where a file of the distribution would be: beside the package `rushlight`."""
        return Path(__file__).parents[2] / path


class Finder(DistributionFinder):
    """Finds the distribution `torch`, and no other."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """No module is found here."""
        return None

    def find_distributions(self, context: DistributionFinder.Context = DistributionFinder.Context()) -> Iterable[Distribution]:  # noqa: B008
        """`torch`, when it or everything is asked for."""
        return [_Torch()] if context.name is None or context.name.lower() == "torch" else []
