"""Loops that differ in pointers and numbers only, as one loop over a table of those.

In: the text of the loop over each segment of a row. Out: the tables' declarations, and the loops. What copies a concatenation
of many tensors is compiled once, and not once per tensor.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence

LEAST = 3  # loops that are worth a table

_TOKEN = re.compile(r"(?<! / )(?<! % )(?<![\w.\[])(\d+L|(?:in|out)\d+)\b")  # divisors stay: the compiler makes products of them
_FIELDS = {"in": "from", "out": "to"}


def merge(loops: Sequence[list[str]], kinds: Mapping[str, str], taken: int) -> tuple[list[str], list[str]]:
    """The declarations of tables, `taken` being there already, and the lines that do what `loops` do, in their order.

    `kinds` are the types of pointers by their names.
    """
    tables: list[str] = []
    lines: list[str] = []
    for _, run in itertools.groupby(("\n".join(loop) for loop in loops), lambda text: _form(text, kinds)):
        texts = list(run)
        if len(texts) < LEAST:
            lines += [line for text in texts for line in text.split("\n")]
            continue
        name = f"parts{taken + len(tables)}"
        table, body = _over_table(texts, kinds, name)
        tables.append(table)
        lines += [f"for (const auto part : {name}) {{", *(f"  {line}" for line in body.split("\n")), "}"]
    return tables, lines


def _form(text: str, kinds: Mapping[str, str]) -> str:
    """What loops of one table have in common."""
    return _TOKEN.sub(lambda found: f"{{{kinds.get(found[0], 'long')}}}", text)


def _over_table(texts: Sequence[str], kinds: Mapping[str, str], name: str) -> tuple[str, str]:
    """The table's declaration, and a loop's text that reads what differs from the table."""
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
