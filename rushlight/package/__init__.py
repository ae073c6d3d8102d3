"""`torch.package`: a model with its code, its weights and further files in one zip file.

`PackageExporter` writes such a file and `PackageImporter` reads it; PyTorch reads what this library wrote, and the other way
round. **A package is code**: unlike `load`, which reads weights only, its importer runs what the file holds. Open only packages
that you trust.
"""

from __future__ import annotations

from rushlight.package.analyze.is_from_package import is_from_package
from rushlight.package.file_structure_representation import Directory
from rushlight.package.glob_group import GlobGroup
from rushlight.package.importer import Importer, ObjMismatchError, ObjNotFoundError, OrderedImporter, sys_importer
from rushlight.package.package_exporter import EmptyMatchError, PackageExporter, PackagingError
from rushlight.package.package_importer import PackageImporter

__all__ = [
    "Directory", "EmptyMatchError", "GlobGroup", "Importer", "ObjMismatchError", "ObjNotFoundError", "OrderedImporter",
    "PackageExporter", "PackageImporter", "PackagingError", "is_from_package", "sys_importer",
]  # fmt: skip
