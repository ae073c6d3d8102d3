"""Export models as C and C++ that run without Python: `export`."""

from rushlight.deploy.exporting import export
from rushlight.deploy.spelling import NotExportable

__all__ = ["NotExportable", "export"]
