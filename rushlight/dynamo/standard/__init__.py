"""Python's builtins and standard functions on tracked values: each module fills `handlers.HANDLERS`."""

from __future__ import annotations

from rushlight.core.module_list import import_all

import_all(__name__, __path__)
