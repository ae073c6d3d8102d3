"""`torch.types`: the types that signatures name."""

from __future__ import annotations

import builtins
import os
from collections.abc import Sequence
from typing import IO, Any, TypeAlias

from rushlight.core.device import device
from rushlight.core.dispatch_key import DispatchKey
from rushlight.core.dtype import dtype
from rushlight.core.layout import layout
from rushlight.core.qscheme import qscheme
from rushlight.core.size import Size
from rushlight.core.storage import UntypedStorage as Storage
from rushlight.core.symbolic import SymBool, SymInt
from rushlight.core.tensor import Tensor

__all__ = ["Device", "FileLike", "Number", "Storage"]

_device, _dtype, _layout, _qscheme, _dispatchkey = device, dtype, layout, qscheme, DispatchKey
_int, _float, _bool, _complex = builtins.int, builtins.float, builtins.bool, builtins.complex
_size: TypeAlias = Size | list[int] | tuple[int, ...]
_symint_size: TypeAlias = Size | Sequence[int | SymInt]
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_TensorOrTensorsOrGradEdge: TypeAlias = Tensor | Sequence[Tensor] | Any
Number: TypeAlias = int | float | bool
Device: TypeAlias = device | str | int | None
FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]
IntLikeType: TypeAlias = int | SymInt
FloatLikeType: TypeAlias = float
BoolLikeType: TypeAlias = bool | SymBool
PySymType: TypeAlias = SymInt | SymBool
py_sym_types = (SymInt, SymBool)
