"""Make the archives in `tests/jit/archives/` by torch: `python -m tests.jit.make_archives`, from the repository's root. Each
carries arguments and results.
"""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path

import torch

from tests.jit.archives_values import encode
from tests.jit.zoo_of import zoo_of

FOLDER = Path(__file__).with_name("archives")
KEPT = ("attributes", "containers", "detection_head", "early_exits", "enums", "forks", "indexing", "interfaces",
        "state_methods", "strings_and_dicts", "traced_with_script")  # fmt: skip


def main() -> None:
    """Write them all."""
    FOLDER.mkdir(exist_ok=True)
    zoo = zoo_of("torch")
    for name in KEPT:
        torch.manual_seed(0)
        module, arguments = zoo[name]()
        call = {"arguments": encode(arguments)}
        call["result"] = encode(torch.jit.load(_saved(module, name))(*arguments))
        torch.jit.save(module, str(FOLDER / f"{name}.pt"), _extra_files={"call.json": json.dumps(call)})
        drop_places_of_torch(FOLDER / f"{name}.pt")


def drop_places_of_torch(path: Path) -> None:
    """Take out the records that name files of torch where it is installed."""
    with zipfile.ZipFile(path) as archive:
        records = [(each, archive.read(each)) for each in archive.infolist()]
    with zipfile.ZipFile(path, "w") as archive:
        for each, data in records:
            if sys.prefix.encode() not in data:
                archive.writestr(each, data)


def _saved(module, name: str) -> str:
    path = str(FOLDER / f"{name}.pt")
    torch.jit.save(module, path)
    return path


if __name__ == "__main__":
    main()
