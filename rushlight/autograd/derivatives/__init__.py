"""The derivative table's entries, by group. Importing this package registers all of them."""

from rushlight.core.module_list import import_all

import_all(__name__, __path__)
