"""The rows of the derivative table, by group. Importing this package declares all of them."""

from rushlight.core.module_list import import_all

import_all(__name__, __path__)
