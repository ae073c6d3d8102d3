"""The values of `ViewMeta.origin`: why in-place writes to a view are forbidden while autograd records; "" where they are
allowed."""

from __future__ import annotations

NO_GRAD_VIEW = "no_grad"
FUNCTION_VIEW = "function"
INFERENCE_VIEW = "inference"
MULTIPLE_VIEWS = "multiple"
