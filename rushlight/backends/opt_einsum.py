"""`torch.backends.opt_einsum`, which is not used: `einsum` goes from left to right."""

from __future__ import annotations

enabled = False
strategy = None


def is_available() -> bool:
    """Return whether opt_einsum is used: it is not."""
    return False


def get_opt_einsum() -> None:
    """Return the package: None, as it is not used."""
    return None
