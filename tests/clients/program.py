"""One file of clients in a process of its own: `python -m tests.clients.program timm_models`.

Prints one line of JSON a stage, the import first. Names of clients behind the file's choose among them.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import sys
import time


def main(words: list[str]) -> None:
    """Run the clients of a file."""
    os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TQDM_DISABLE="1")
    logging.disable(logging.WARNING)
    package, *chosen = words
    start = time.perf_counter()
    try:
        module = importlib.import_module(f"tests.clients.packages.{package}")
    except Exception as error:  # any error is a result of the stage
        tell({"client": package, "stage": "import", "error": f"{type(error).__name__}: {error}"[:300]})
        return
    tell({"client": package, "stage": "import", "values": None, "seconds": round(time.perf_counter() - start, 2)})
    from tests.clients.stages import CLIENTS, run

    for client in CLIENTS:
        if client.__module__ == module.__name__ and (not chosen or client.name in chosen):
            for record in run(client):
                tell(record)


def tell(record: dict) -> None:
    """Print one record."""
    print(json.dumps(record), file=sys.__stdout__, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
