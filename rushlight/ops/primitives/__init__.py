"""The primitive tables, by group: every operator that has a rule in each stage, by its ATen schema.

All other operators are composites (`ops/composite`) of these. Importing this package defines all of them.
`tests/test_tables.py` checks that each primitive has rows in the Meta, CPU, derivative and lowering tables.
"""

from rushlight.core.module_list import import_all

import_all(__name__, __path__)
