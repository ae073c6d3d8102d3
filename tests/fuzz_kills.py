"""Kills a process that compiles, with its compiler, at random moments; the next one must find nothing broken.

    python -m tests.fuzz_kills --kills 200

A clean first run says how long one takes. Each round starts a process on a cache folder that is cold or holds what earlier
rounds left, kills it (with or without the compiler that it started), checks that every entry in the folder is whole, and runs
the program again: it must be right.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rushlight.utils.native import cache

PROGRAM = """
import rushlight as torch
x = torch.arange(12.0).reshape(3, 4) + NUMBER
def function(x):
    return (x * NUMBER).softmax(-1) + (x @ x.t()).sum()
with torch.no_grad():
    got = torch.compile(function)(x)
assert (got - function(x)).abs().max() < 1e-3
"""


def start(folder: Path, number: int) -> subprocess.Popen:
    """A process that compiles one of many programs; warnings are errors in it."""
    environment = {**os.environ, "RUSHLIGHT_CACHE_DIR": str(folder), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PROGRAM.replace("NUMBER", str(number))],
        env=environment, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip


def kill_at(folder: Path, seconds: float, number: int = 3, with_compiler: bool = False) -> None:
    """One round; AssertionError for anything broken."""
    process = start(folder, number)
    compilers = _wait_and_find_compilers(process, seconds) if with_compiler else time.sleep(seconds) or []
    process.send_signal(signal.SIGKILL)
    for compiler in compilers:
        _kill(compiler)
    process.communicate()
    broken = [path for path in folder.glob("[!.]*.*") if path.suffix in (".so", ".plan", ".capture") and not cache.is_intact(path)]
    assert not broken, f"{broken} after a kill at {seconds} s"
    process = start(folder, number)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0, f"after a kill at {seconds} s: {said.decode()}"


def _wait_and_find_compilers(process: subprocess.Popen, seconds: float) -> list[int]:
    """The processes that `process` has as children after some seconds. Each leads a group of its own."""
    time.sleep(seconds)
    try:
        return [int(found) for found in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
    except OSError:
        return []


def _kill(group: int) -> None:
    try:
        if os.getpgid(group) == group:
            os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chosen = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as base:
        begin = time.monotonic()
        assert start(Path(base) / "whole", 0).wait() == 0
        whole = time.monotonic() - begin
        for number in range(options.kills):
            folder = Path(base) / str(chosen.randrange(1 + options.kills // 4))
            seconds = chosen.uniform(0.1, whole)
            kill_at(folder, seconds, chosen.randrange(1000), with_compiler=chosen.random() < 0.5)
            if number % 20 == 19:
                print(f"{number + 1} kills", flush=True)
    print(f"{options.kills} kills: the next run was right after each")


if __name__ == "__main__":
    main()
