"""Kills a rank at random moments: the others must end soon and name it, and no process may stay.

    python -m tests.fuzz_rank_kills --kills 100

Rank 1 of 2 or 3 runs collectives with the others, synchronous and asynchronous, and is killed by a timer. Prints what went
wrong; the exit status is the number of such runs.
"""

from __future__ import annotations

import argparse
import collections
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.distributed.ranks import launch
from tests.distributed.test_faults import FAULTY, processes_of

_BOUND = 10.0  # seconds from the kill to the end of the launcher
_NAMED = re.compile(r"rank [02](?: waits in|: \w+ no| of \d was terminated while it waited in)")


def main() -> int:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--kills", type=int, default=20)
    reader.add_argument("--seed", type=int, default=0)
    options = reader.parse_args()
    source, wrong = random.Random(options.seed), 0
    slowest, places = 0.0, collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "killed_program.py"
        program.write_text(Path(FAULTY).read_text())
        for number in range(options.kills):
            ranks, after = source.choice((2, 3)), source.uniform(0.001, 0.4)
            problem, seconds, place = _kill_once(program, ranks, after)
            slowest = max(slowest, seconds)
            places[place] += 1
            if problem:
                wrong += 1
                print(f"kill {number}, of {ranks} ranks after {after:.3f} s: {problem}")
    print(f"{options.kills} kills, {wrong} wrong; slowest end {slowest:.1f} s after the kill; waited in: {dict(places)}")
    return min(wrong, 100)


def _kill_once(program: Path, ranks: int, after: float) -> tuple[str, float, str]:
    """Return what went wrong, how long after the kill the run ended, and the collective that was named."""
    try:
        done = launch(ranks, str(program), "random", str(after), timeout=60)
    except subprocess.TimeoutExpired as error:
        return f"still running after 60 s: {error.stderr}", 60.0, ""
    seconds = time.time() - float(program.with_suffix(".time").read_text())
    found = re.search(r"(?:waits in|waited in|: )(?: )?(\w+) no\. \d+", done.stderr)
    place = found[1] if found else "no operation"
    if done.returncode == 0 or "rank 1" not in done.stderr.strip().splitlines()[-1]:
        return f"exit status {done.returncode}: {done.stderr[-2000:]}", seconds, place
    if not _NAMED.search(done.stderr):
        return f"no rank said what it waited in: {done.stderr[-2000:]}", seconds, place
    if seconds > _BOUND:
        return f"ended {seconds:.1f} s after the kill", seconds, place
    if left := processes_of(str(program)):
        return f"left processes {left}", seconds, place
    return "", seconds, place


if __name__ == "__main__":
    sys.exit(main())
