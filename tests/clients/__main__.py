"""Clients' stages beside PyTorch's values: `python -m tests.clients` runs all and counts, in an environment without PyTorch.

python -m tests.clients --write              write docs/clients.md, too
python -m tests.clients --quick              the clients that every change has to pass
python -m tests.clients timm_models ViT      one file of `packages`, of which these clients
python -m tests.clients --record             over PyTorch, in an environment of its own: write values.json
"""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ThreadPoolExecutor

from tests.clients.packages import FILES, QUICK
from tests.clients.processes import records
from tests.clients.report import write_report
from tests.clients.values import judge, recorded, write_values


def main() -> int:
    """Runs the stages that the command names; returns the number of mismatches."""
    options = _options()
    chosen = QUICK if options.quick else {options.file: options.clients} if options.file else dict.fromkeys(FILES, [])
    values, found, judged = recorded(), {}, {}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for file, told in zip(chosen, pool.map(records, chosen, chosen.values()), strict=True):
            found[file], judged[file] = told, judge(told, values.get(file, {}))
            if not options.record:
                _print(file, judged[file])
    if options.record:
        write_values(found)
        return 0
    if options.write:
        write_report(judged)
    return sum(record["miss"] is not None for found in judged.values() for record in found)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.clients")
    parser.add_argument("--record", action="store_true", help="write values.json, over PyTorch")
    parser.add_argument("--write", action="store_true", help="write docs/clients.md")
    parser.add_argument("--quick", action="store_true", help="only what every change has to pass")
    parser.add_argument("file", nargs="?", choices=[*FILES], help="one file of tests/clients/packages")
    parser.add_argument("clients", nargs="*", help="clients of that file")
    return parser.parse_args()


def _print(file: str, judged: list[dict]) -> None:
    misses = [record for record in judged if record["miss"] is not None]
    seconds = sum(record["seconds"] for record in judged)
    print(f"{file}: {len(judged) - len(misses)} of {len(judged)} stages, {seconds:.0f} s", flush=True)
    for record in misses:
        print(f"    {record['client']}, {record['stage']}: {record['miss']}", flush=True)


if __name__ == "__main__":
    sys.exit(min(main(), 1))
