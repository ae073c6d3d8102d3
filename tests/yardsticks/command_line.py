"""The command line that the yardsticks share: the samples to check, and the lists of clean operators."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path


def argument_parser(description: str, clean: Path) -> argparse.ArgumentParser:
    """A parser with `names` to check (none for all) and `write`, which adds clean ones to the file `clean`."""
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument("names", nargs="*", help="torch's names, of operators without or with the variant; all by default")
    parser.add_argument("--write", action="store_true", help=f"add the clean ones to {clean.name}")
    return parser


def parse_arguments(description: str, clean: Path) -> argparse.Namespace:
    """What `argument_parser` finds on the command line."""
    return argument_parser(description, clean).parse_args()


def chosen_operators(known: dict, names: list[str]) -> dict:
    """The OpInfos of `known` chosen by `names`, by full name."""
    return {name: op for name, op in known.items() if not names or {name, op.name} & set(names)}


def add_to_list(clean: Path, names: Iterable[str]) -> None:
    """Adds `names` to a list of clean operators; nothing leaves it."""
    clean.write_text("\n".join(sorted({*clean.read_text().split(), *names})) + "\n")
