"""Batched tensors, on which `vmap` runs functions: tensors that hide one dimension for each vmap around them.

`layout.py` says what they are, `levels.py` which calls of vmap are running, `kernel.py` how an operator is called on them; the
rules by operator are in `rules/`, which the first map imports (`loading.py`).
"""
