"""The primitive tables, by group: every operator that has a rule in each stage, by its ATen schema.

Everything else is a composite (`ops/composite`) written with these. Importing this package defines all of them.
`tests/test_tables.py` checks that each primitive has rows in the Meta, CPU, derivative and lowering tables.
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__, __name__ + "."):
    import_module(_module.name)
