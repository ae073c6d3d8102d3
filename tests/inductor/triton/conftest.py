"""Tests of Triton kernels: skipped without Triton. Kernels are interpreted in this process, and compiled in others."""

import importlib.util
import os

os.environ.setdefault("TRITON_INTERPRET", "1")
if importlib.util.find_spec("triton") is None:
    collect_ignore_glob = ["test_interpreted*.py", "test_cubins.py", "test_sanitizer.py"]
