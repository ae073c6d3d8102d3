"""What the sentence encoder costs: eager and compiled calls, the first compiled call, the import.

`python -m examples.timing FOLDER` prints the seconds that the first compiled call takes in this new process.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import rushlight as torch
from examples.minilm import load_encoder

TOKENS = 128
IMPORT = "import time; start = time.perf_counter(); import rushlight; print(time.perf_counter() - start)"


def one_sentence() -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids and mask of one full-length sentence, (1, TOKENS) each."""
    input_ids = (torch.arange(TOKENS) * 37 % 20000 + 1000).unsqueeze(0)
    return input_ids, torch.ones_like(input_ids)


def milliseconds(calls: dict[str, Callable[[], object]], rounds: int, repeats: int = 5) -> dict[str, float]:
    """The median milliseconds of each call; the calls take turns, so that a busy machine disturbs all alike."""
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            call()
            for _ in range(repeats):
                start = time.perf_counter()
                call()
                samples[name].append((time.perf_counter() - start) * 1e3)
    return {name: statistics.median(values) for name, values in samples.items()}


def first_call(folder: Path) -> float:
    """Seconds that the first compiled call takes, capture and compilation included, loading the weights left out."""
    encoder = torch.compile(load_encoder(folder))
    input_ids, attention_mask = one_sentence()
    with torch.inference_mode():
        start = time.perf_counter()
        encoder(input_ids, attention_mask)
        return time.perf_counter() - start


def fresh_process(arguments: list[str], cache: str | None = None) -> float:
    """The number that a new Python process prints. Dumps and logs are off there, as they would be timed too."""
    silenced = ("RUSHLIGHT_DUMP", "RUSHLIGHT_LOGS")
    environment = {name: value for name, value in os.environ.items() if name not in silenced}
    if cache is not None:
        environment["RUSHLIGHT_CACHE_DIR"] = cache
    finished = subprocess.run([sys.executable, *arguments], env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return float(finished.stdout)


def first_calls(folder: Path) -> tuple[float, float]:
    """Seconds of the first compiled call in a new process: with an empty cache, then with what that one left."""
    with tempfile.TemporaryDirectory(prefix="rushlight-cache-") as cache:
        arguments = ["-m", "examples.timing", str(folder)]
        return fresh_process(arguments, cache), fresh_process(arguments, cache)


def import_seconds(repeats: int) -> float:
    """Median seconds of `import rushlight` in a new process."""
    return statistics.median(fresh_process(["-c", IMPORT]) for _ in range(repeats))


if __name__ == "__main__":
    print(first_call(Path(sys.argv[1])))
