"""Why a view must not be written to while autograd records: the values of `ViewMeta.origin`, "" where it may be."""

from __future__ import annotations

NO_GRAD_VIEW = "no_grad"
FUNCTION_VIEW = "function"
INFERENCE_VIEW = "inference"
MULTIPLE_VIEWS = "multiple"
