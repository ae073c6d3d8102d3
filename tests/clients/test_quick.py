"""Packages that require PyTorch give its values over Rushlight; `make clients` runs all of them, and writes docs/clients.md.

They run in an environment of their own, which has packaging/rushlight-torch in PyTorch's place; `make test` makes it.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.packages import QUICK

ROOT = Path(__file__).parents[2]
PYTHON = Path(os.environ.get("RUSHLIGHT_CLIENTS_PYTHON", f"{sys.prefix}-clients/bin/python"))

READY = PYTHON.parents[1] / ".quick"  # the Makefile's stamp: everything is installed

pytestmark = pytest.mark.skipif(not READY.exists(), reason="the clients' environment was not made (make clients-quick)")


@pytest.mark.parametrize("file", QUICK)
def test_stages_give_the_values_of_pytorch(file):
    command = [str(PYTHON), "-m", "tests.clients", file, *QUICK[file]]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
