"""Write the folder of an exported model.

In: a `Model`. Out: its header, C++ file, the native headers it includes, weights, CMake and pkg-config files, an example and a
README, and a module of JavaScript for its WebAssembly.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rushlight.deploy import templates
from rushlight.deploy.header import write_header
from rushlight.deploy.javascript import write_javascript
from rushlight.deploy.levels import write_levels
from rushlight.deploy.model import Model
from rushlight.deploy.source import write_source
from rushlight.inductor.build import INCLUDE

OWN_INCLUDE = Path(__file__).parent / "include"
_INCLUDE = re.compile(r"^#include <(rushlight/\w+\.h)>", re.MULTILINE)
MARK = ".rushlight-export"
_STAGED = ".rushlight-staged-"


def write_package(model: Model, folder: Path, embed: bool, force: bool) -> None:
    """Write the folder. FileExistsError if it holds files that no export wrote, unless `force`.

    All files are written beside the old ones first and then renamed, so that a failure leaves an older export as it was, and
    a process that has mapped the old weights keeps them. Files of the older export that the new one lacks are removed.
    """
    if folder.exists() and not force and any(folder.iterdir()) and not (folder / MARK).exists():
        raise FileExistsError(f"{folder} holds other files; export into a new folder, or over them with force (--force)")
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder / MARK) as mark:
        for left in folder.glob(f"{_STAGED}*"):  # by an export that was killed
            shutil.rmtree(left, ignore_errors=True)
        staged = Path(tempfile.mkdtemp(prefix=_STAGED, dir=folder))
        try:
            _write_files(model, staged, embed)
            _replace_files(staged, folder, mark)
        finally:
            shutil.rmtree(staged, ignore_errors=True)


@contextmanager
def _locked(mark: Path) -> Iterator[Path]:
    """Let one export at a time write a folder, whose mark exists inside of the block."""
    with mark.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield mark


def _replace_files(staged: Path, folder: Path, mark: Path) -> None:
    """Move the staged files into the folder, and remove those of an older export, which its mark lists."""
    old = mark.read_text().splitlines()
    new = sorted(str(path.relative_to(staged)) for path in staged.rglob("*") if path.is_file())
    mark.write_text("".join(f"{name}\n" for name in dict.fromkeys([*old, *new])))  # complete even if this is interrupted
    for name in new:
        (folder / name).parent.mkdir(exist_ok=True)
        os.replace(staged / name, folder / name)
    for name in set(old) - set(new):
        if ".." not in Path(name).parts and not Path(name).is_absolute():
            (folder / name).unlink(missing_ok=True)
    mark.write_text("".join(f"{name}\n" for name in new))


def _write_files(model: Model, folder: Path, embed: bool) -> None:
    name = model.name
    header = write_header(model, embed)
    source, identity = write_source(model, header, embed)
    weights = folder / f"{name}.weights"
    digest = hashlib.sha256()
    with weights.open("wb") as file:
        for chunk in model.weights.chunks(identity):
            digest.update(chunk)
            file.write(chunk)
    (folder / f"{name}.h").write_text(header)
    (folder / f"{name}.cpp").write_text(source)
    (folder / f"{name}_levels.cpp").write_text(write_levels(header, name))
    copy_headers(source, folder / "rushlight")
    if embed:
        (folder / f"{name}_weights.S").write_text(templates.embedding(name, weights.stat().st_size))
    write_javascript(model, folder, weights.stat().st_size if embed else 0)
    (folder / "CMakeLists.txt").write_text(templates.cmake(name, embed))
    (folder / f"{name}Config.cmake.in").write_text(templates.cmake_config(name))
    (folder / f"{name}.pc.in").write_text(templates.pkg_config(name))
    (folder / "example.c").write_text(templates.example(model, embed))
    (folder / "README.md").write_text(templates.readme(model, embed, digest.hexdigest(), weights.stat().st_size))


def copy_headers(source: str, folder: Path) -> None:
    """Copy the native headers that a text includes, transitively."""
    folder.mkdir(exist_ok=True)
    pending, seen = _INCLUDE.findall(source), set()
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        path = next(root / name for root in (OWN_INCLUDE, INCLUDE) if (root / name).exists())
        text = path.read_text()
        pending += _INCLUDE.findall(text)
        (folder / path.name).write_text(text)
