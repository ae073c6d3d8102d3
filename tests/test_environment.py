"""What importing the package sets in the environment, and what it leaves to the user."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from rushlight._environment import SPINS


@pytest.mark.parametrize(
    ("given", "spins"),
    [({}, SPINS), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "active"}, "None")],
    ids=["unset", "count", "policy"],
)
def test_spinning_is_limited_unless_the_user_says_otherwise(given, spins):
    environment = {name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    script = "import rushlight, os; print(os.environ.get('GOMP_SPINCOUNT'))"
    done = subprocess.run([sys.executable, "-c", script], env={**environment, **given}, capture_output=True, text=True)
    assert done.stdout.strip() == spins, done.stderr


WATCH = """
import os, sys

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "rushlight._kernels":
            print(os.environ.get("GOMP_SPINCOUNT"))

sys.meta_path.insert(0, Watch())
import rushlight
"""


def test_the_variable_is_set_before_the_library_that_reads_it_is_loaded():
    """The native kernels bring it."""
    environment = {name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    done = subprocess.run([sys.executable, "-c", WATCH], env=environment, capture_output=True, text=True)
    assert done.stdout.strip() == SPINS, done.stderr
