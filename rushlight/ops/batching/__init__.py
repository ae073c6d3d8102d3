"""Batched tensors, on which `vmap` runs functions: tensors that hide one dimension for each vmap around them.

`layout.py` defines them, `levels.py` keeps the active calls of vmap, and `kernel.py` calls operators on them. The rules by
operator are in `rules/`, which the first vmap imports (`loading.py`).
"""
