"""Runs each client file in its own process, so that a crash loses only the rest of that file."""

from __future__ import annotations

import json
import subprocess
import sys

LONGEST = 1800  # seconds that a file may take


def records(file: str, clients: list[str]) -> list[dict]:
    """The records of a file's stages. If the process ends early, one more record says how."""
    command = [sys.executable, "-m", "tests.clients.program", file, *clients]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST)
        printed, ended = done.stdout, None if done.returncode == 0 else _last_words(done)
    except subprocess.TimeoutExpired as late:
        printed, ended = (late.stdout or b"").decode(), f"not done after {LONGEST} s"
    found = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    return [*found, *([{"client": file, "stage": "end", "error": ended, "seconds": 0}] if ended else [])]


def _last_words(done: subprocess.CompletedProcess) -> str:
    last = (done.stderr.strip().splitlines() or [""])[-1]
    return f"the process ended with {done.returncode}: {last[:200]}"
