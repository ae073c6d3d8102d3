"""Writes docs/compatibility.md, which names of PyTorch are here: `python tools/compatibility.py`.

In: `torch_names.json`, PyTorch's public names, and the package. Out: of each module the names that are here, those that are
here in part, with the parameters that are missing, and those that are absent. With `--check`, says whether the file is current.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
import sys
import warnings
from pathlib import Path
from types import ModuleType

from rushlight.core.absent import is_absent

ROOT = Path(__file__).resolve().parents[1]
NAMES = ROOT / "tools" / "torch_names.json"
PAGE = ROOT / "docs" / "compatibility.md"
HERE, PARTLY, RAISES, ABSENT = "here", "partly", "raises when used", "absent"
_WIDTH = 128


def module_here(name: str) -> object | None:
    """The module, or the class Tensor, that stands for one of PyTorch; None where there is none."""
    own = "rushlight" + name.removeprefix("torch")
    if name == "torch.Tensor":
        return importlib.import_module("rushlight").Tensor
    try:
        return importlib.import_module(own)
    except ModuleNotFoundError:
        return None


def state_of(module: object, name: str, kind: str) -> tuple[str, list[str]]:
    """Whether a name is here, and the parameters that it has in PyTorch alone."""
    missing = object()
    value = getattr(module, name, missing)
    if value is missing and isinstance(module, ModuleType):
        value = module_here(f"torch{module.__name__.removeprefix('rushlight')}.{name}") or missing
    if value is missing:
        return ABSENT, []
    if is_absent(value):
        return RAISES, []
    lost = missing_parameters(value, kind)
    return (PARTLY, lost) if lost else (HERE, [])


def missing_parameters(value: object, kind: str) -> list[str]:
    """The parameters that `kind`, "function (a, *args)", lists and a function or class does not take."""
    listed = re.fullmatch(r"(?:class|function) \((.*)\)", kind)
    if listed is None:
        return []
    try:
        own = inspect.signature(value).parameters
    except (TypeError, ValueError):
        return []
    if any(each.kind is each.VAR_KEYWORD for each in own.values()):
        return []
    takes_any = any(each.kind is each.VAR_POSITIONAL for each in own.values())
    theirs = [each for each in listed[1].split(", ") if each and each != "self" and not each.startswith("_")]
    return [each for each in theirs if each not in own and not each.startswith("*") and not takes_any]


def report() -> str:
    """The page."""
    names = json.loads(NAMES.read_text())
    states = {name: _states(name, entries) for name, entries in names.items()}
    total = _count(states.values())
    everything = sum(total.values())
    lines = [
        "# Which names of PyTorch are here", "",
        "Written by `make compatibility` from the public names of PyTorch 2.13; a test keeps it true. *Partly*: a parameter is",
        "missing, which is named. *Raises when used*: the name can be imported, inherited from and tested for, and says so",
        "when it is called. Modules that are not listed with names are absent as a whole.", "",
        f"Of {everything} names {total[HERE]} are here, {total[PARTLY]} partly, {total[RAISES]} raise when used, "
        f"{total[ABSENT]} are absent.", "", "| area | here | partly | raises when used | absent |", "|---|---|---|---|---|",
    ]  # fmt: skip
    areas: dict[str, list] = {}
    for name, found in states.items():
        areas.setdefault(".".join(name.split(".")[:2]), []).append(found)
    for area, found in areas.items():
        counts = _count(found)
        lines.append(f"| {area} | {counts[HERE]} | {counts[PARTLY]} | {counts[RAISES]} | {counts[ABSENT]} |")
    for name, found in states.items():
        lines += _section(name, found)
    return "\n".join(lines) + "\n"


def _states(name: str, entries: dict[str, str]) -> dict[str, tuple[str, list[str]]]:
    module = module_here(name)
    return {each: (ABSENT, []) if module is None else state_of(module, each, kind) for each, kind in entries.items()}


def _count(found: object) -> dict[str, int]:
    counts = dict.fromkeys((HERE, PARTLY, RAISES, ABSENT), 0)
    for states in found:
        for state, _ in states.values():
            counts[state] += 1
    return counts


def _section(name: str, found: dict[str, tuple[str, list[str]]]) -> list[str]:
    if all(state == ABSENT for state, _ in found.values()):
        return ["", f"## {name}", "", f"Absent, with its {len(found)} names."]
    lines = ["", f"## {name}"]
    for wanted in (HERE, PARTLY, RAISES, ABSENT):
        each = [_entry(key, lost) for key, (state, lost) in found.items() if state == wanted]
        if each:
            lines += ["", *_wrapped(f"{wanted.capitalize()}: {', '.join(each)}.")]
    return lines


def _entry(name: str, lost: list[str]) -> str:
    return f"`{name}` (without {', '.join(lost)})" if lost else f"`{name}`"


def _wrapped(text: str) -> list[str]:
    lines, current = [], ""
    for word in text.split(" "):
        if current and len(current) + 1 + len(word) > _WIDTH:
            lines.append(current)
            current = word
        else:
            current = f"{current} {word}" if current else word
    return [*lines, current]


def main(words: list[str]) -> int:
    """Write the page, or check it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text = report()
    if words == ["--check"]:
        if PAGE.exists() and PAGE.read_text() == text:
            return 0
        print(f"{PAGE} is not what the package says; run make compatibility")
        return 1
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
