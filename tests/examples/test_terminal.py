"""Examples as programs in a terminal: Ctrl-C, and readers that go away."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from examples.terminal import run

def main(words):
    {body}
    return 3

run(main)
"""


@pytest.mark.parametrize(
    ("body", "status", "printed"),
    [("print(words)", 3, "['a', 'b']\n"), ("print('x', end=''); raise KeyboardInterrupt", 130, "x\n")],
)
def test_what_main_returns(body, status, printed):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(body=body), "a", "b"], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (status, printed, "")


def test_reader_that_has_gone():
    body = "\n    ".join(["for _ in range(100000):", "    print('word', flush=True)"])
    running = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(body=body)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert running.stdout.readline() == "word\n"
    running.stdout.close()
    assert running.wait(60) == 1
    assert running.stderr.read() == ""
    running.stderr.close()
