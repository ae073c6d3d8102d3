"""Merge loops that differ only in pointers and numbers into one loop over a table.

In: the text of the loop over each segment of a row. Out: the tables' declarations, and the loops. A concatenation of many
tensors thus compiles one loop, not one per tensor.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence

MIN_LOOPS = 3  # fewer loops are not worth a table

# Matches pointers and numbers, except divisors: these stay constants, which the compiler turns into products.
_TOKEN = re.compile(r"(?<! / )(?<! % )(?<![\w.\[])(\d+L|(?:in|out)\d+)\b")
_FIELDS = {"in": "from", "out": "to"}


def merge(loops: Sequence[list[str]], kinds: Mapping[str, str], taken: int) -> tuple[list[str], list[str]]:
    """Return the declarations of new tables (`taken` tables exist already), and lines that do the work of `loops` in order.

    `kinds` maps pointer names to types.
    """
    tables: list[str] = []
    lines: list[str] = []
    for _, run in itertools.groupby(("\n".join(loop) for loop in loops), lambda text: _replace_varying_parts(text, kinds)):
        texts = list(run)
        if len(texts) < MIN_LOOPS:
            lines += [line for text in texts for line in text.split("\n")]
            continue
        name = f"parts{taken + len(tables)}"
        table, body = _loop_over_table(texts, kinds, name)
        tables.append(table)
        lines += [f"for (const auto part : {name}) {{", *(f"  {line}" for line in body.split("\n")), "}"]
    return tables, lines


def _replace_varying_parts(text: str, kinds: Mapping[str, str]) -> str:
    """Return a loop's text with placeholders for pointers and numbers."""
    return _TOKEN.sub(lambda found: f"{{{kinds.get(found[0], 'long')}}}", text)


def _loop_over_table(texts: Sequence[str], kinds: Mapping[str, str], name: str) -> tuple[str, str]:
    """Return the table's declaration, and the text of a loop that reads the varying parts from it."""
    columns = list(zip(*(_TOKEN.findall(text) for text in texts), strict=True))
    fields: dict[tuple[str, ...], str] = {}
    members = []
    for column in dict.fromkeys(columns):
        if len(set(column)) > 1:
            prefix = _FIELDS[column[0].rstrip("0123456789")] if column[0] in kinds else "size"
            fields[column] = f"{prefix}{sum(field.startswith(prefix) for field in fields.values())}"
            members.append(f"{kinds.get(column[0], 'long')} {fields[column]};")
    rows = ", ".join(f"{{{', '.join(row)}}}" for row in zip(*fields, strict=True))
    following = iter(columns)

    def substitute(found: re.Match) -> str:
        field = fields.get(next(following))
        return found[0] if field is None else f"part.{field}"

    return f"const struct {{ {' '.join(members)} }} {name}[] = {{{rows}}};", _TOKEN.sub(substitute, texts[0])
