"""Kernel families: kernels that differ only in numbers become one function with parameters, so that a deep network's repeated
layers of different sizes compile once.

In: the text of each kernel, with `@` for its name. Out: the functions, and for each kernel its function and arguments. Vector
loops are as fast with variable bounds and strides. Small numbers, which unroll loops, and divisors of values that vary along a
row, which the compiler turns into products, stay constants.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

MIN_NUMBER = 16  # smaller numbers stay constants, because loops unroll by them

_NUMBER = re.compile(r"(?<![\w.\[])(\d+)(L|\.0f)\b")  # a size, or a whole floating-point number such as a mean's count
_DIVIDING = (" / ", " % ")
_ROW_CONSTANT_DIVIDEND = re.compile(r"(?:^|\W)(?:x|o|block|first) ..$")  # a dividend that is constant along a row
_FIRST_LINE = re.compile(r"\) \{\n")


@dataclass(frozen=True, slots=True)
class Member:
    """A kernel as a call of function number `number` of the program; the C++ numbers `passed` follow its arguments."""

    number: int
    passed: tuple[str, ...] = ()


def share(texts: Iterable[str]) -> tuple[list[str], dict[str, Member]]:
    """Return the functions' texts, and text -> member."""
    families: dict[str, dict[str, list[str]]] = {}
    for text in texts:
        numbers: list[str] = []
        common = _NUMBER.sub(
            lambda found, to=numbers: _replace_number(found, to) if _can_become_argument(found) else found[0], text
        )
        families.setdefault(common, {})[text] = numbers
    functions, members = [], {}
    for number, family in enumerate(families.values()):
        columns = list(zip(*family.values(), strict=True))
        differing = [column for column in dict.fromkeys(columns) if len(set(column)) > 1]
        first = next(iter(family))
        functions.append(_with_parameters(first, columns, differing) if differing else first)
        for position, text in enumerate(family):
            members[text] = Member(number, tuple(column[position] for column in differing))
    return functions, members


def _can_become_argument(found: re.Match) -> bool:
    """Return whether a number may become an argument of the function."""
    before = found.string[max(0, found.start() - 9) : found.start()]
    return int(found[1]) >= MIN_NUMBER and not (before.endswith(_DIVIDING) and not _ROW_CONSTANT_DIVIDEND.search(before))


def _replace_number(found: re.Match, numbers: list[str]) -> str:
    """Record a number and return its placeholder in the family's common text."""
    numbers.append(found[0])
    return "{size}" if found[2] == "L" else "{count}"


def _with_parameters(text: str, columns: list[tuple[str, ...]], differing: list[tuple[str, ...]]) -> str:
    """Return a member's text with parameters in place of the numbers that differ."""
    names, kinds = {}, []
    for column in differing:
        kind, prefix = ("long", "size") if column[0].endswith("L") else ("float", "count")
        names[column] = f"{prefix}{sum(name.startswith(prefix) for name in names.values())}"
        kinds.append(f"{kind} {names[column]}")
    following = iter(columns)
    body = _NUMBER.sub(lambda found: names.get(next(following), found[0]) if _can_become_argument(found) else found[0], text)
    return _FIRST_LINE.sub(lambda _: f", {', '.join(kinds)}) {{\n", body, count=1)
