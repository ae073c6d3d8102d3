"""`torch.version`: what this build is, and what it was built with."""

from __future__ import annotations

__version__ = "0.1.0"
git_version = None
cuda = None
hip = None
debug = False
