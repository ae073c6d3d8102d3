"""`torch.export`: capture programs as graphs that run without their Python source, for other runtimes and for files.

`export` returns an `ExportedProgram`; `save` and `load` use a `.pt2` file.
"""

from __future__ import annotations

from rushlight.export import dynamic_shapes, exported_program, graph_signature
from rushlight.export.archive import load, save
from rushlight.export.dynamic_shapes import AdditionalInputs, Constraint, Dim, ShapesCollection, dims
from rushlight.export.errors import UserError
from rushlight.export.exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature, default_decompositions
from rushlight.export.exporting import export
from rushlight.export.graph_signature import ExportBackwardSignature, ExportGraphSignature
from rushlight.utils._pytree import register_dataclass

export_for_training = export

__all__ = [
    "AdditionalInputs", "Constraint", "Dim", "ExportBackwardSignature", "ExportGraphSignature", "ExportedProgram",
    "ModuleCallEntry", "ModuleCallSignature", "ShapesCollection", "UserError", "default_decompositions", "dims",
    "dynamic_shapes", "export", "export_for_training", "exported_program", "graph_signature", "load",
    "register_dataclass", "save",
]  # fmt: skip
