"""The rules of operators for batched tensors, by family. Importing this package defines all of them."""

from rushlight.core.module_list import import_all

import_all(__name__, __path__)
