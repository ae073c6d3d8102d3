"""Kernels that differ in numbers only, as one function that takes the numbers: what a deep network repeats at other sizes is
compiled once.

In: the text of each kernel, with `@` for its name. Out: the functions, and for each kernel which one it is and what numbers it
passes. Loops over vectors run as fast when their ends and steps are arguments. Small numbers, by which loops are unrolled, and
divisors of what changes along a row, which the compiler turns into products, stay constants.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

LEAST = 16  # smaller numbers stay

_NUMBER = re.compile(r"(?<![\w.\[])(\d+)(L|\.0f)\b")  # a size, or a whole number in floating point, as that of a mean
_DIVIDING = (" / ", " % ")
_STAYING = re.compile(r"(?:^|\W)(?:x|o|block|first) ..$")  # what is divided here stays the same along a row
_FIRST_LINE = re.compile(r"\) \{\n")


@dataclass(frozen=True, slots=True)
class Member:
    """A kernel as a call of a function, `number` among those of the program, with numbers in C++ that follow its arguments."""

    number: int
    passed: tuple[str, ...] = ()


def share(texts: Iterable[str]) -> tuple[list[str], dict[str, Member]]:
    """The functions' texts, and what each of `texts` became."""
    families: dict[str, dict[str, list[str]]] = {}
    for text in texts:
        numbers: list[str] = []
        common = _NUMBER.sub(lambda found, to=numbers: _take(found, to) if _may_differ(found) else found[0], text)
        families.setdefault(common, {})[text] = numbers
    functions, members = [], {}
    for number, family in enumerate(families.values()):
        columns = list(zip(*family.values(), strict=True))
        differing = [column for column in dict.fromkeys(columns) if len(set(column)) > 1]
        first = next(iter(family))
        functions.append(_with_parameters(first, columns, differing) if differing else first)
        for place, text in enumerate(family):
            members[text] = Member(number, tuple(column[place] for column in differing))
    return functions, members


def _may_differ(found: re.Match) -> bool:
    """Whether a number may be an argument."""
    before = found.string[max(0, found.start() - 9) : found.start()]
    return int(found[1]) >= LEAST and not (before.endswith(_DIVIDING) and not _STAYING.search(before))


def _take(found: re.Match, numbers: list[str]) -> str:
    """What stands for a number in the text that a family has in common."""
    numbers.append(found[0])
    return "{size}" if found[2] == "L" else "{count}"


def _with_parameters(text: str, columns: list[tuple[str, ...]], differing: list[tuple[str, ...]]) -> str:
    """A member's text, in which parameters take the place of the numbers that differ."""
    names, kinds = {}, []
    for column in differing:
        kind, prefix = ("long", "size") if column[0].endswith("L") else ("float", "count")
        names[column] = f"{prefix}{sum(name.startswith(prefix) for name in names.values())}"
        kinds.append(f"{kind} {names[column]}")
    following = iter(columns)
    body = _NUMBER.sub(lambda found: names.get(next(following), found[0]) if _may_differ(found) else found[0], text)
    return _FIRST_LINE.sub(lambda _: f", {', '.join(kinds)}) {{\n", body, count=1)
