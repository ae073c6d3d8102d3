"""The bytecode of a function, each instruction with the line that it comes from.

In: a code object. Out: a text with one instruction on a line, and blocks of those lines by the program's lines.
"""

from __future__ import annotations

import dis
from types import CodeType

from rushlight.explorer.places import Block, Files


def bytecode_of(code: CodeType, files: Files) -> tuple[str, list[Block]]:
    """The instructions, and where they come from."""
    lines: list[str] = []
    blocks: list[Block] = []
    before = None
    for number, instruction in enumerate(dis.get_instructions(code), 1):
        line = instruction.positions.lineno if instruction.positions is not None else None
        shown = str(line) if line is not None and line != before else ""
        jump = ">>" if instruction.is_jump_target else ""
        text = f"{shown:>5} {jump:>2} {instruction.offset:4} {instruction.opname:<24} {instruction.argrepr}"
        lines.append(text.rstrip().replace("\n", "\\n"))
        if line is None:
            continue
        if line == before and blocks and blocks[-1][1] == number - 1:
            blocks[-1] = (blocks[-1][0], number, blocks[-1][2])
        else:
            blocks.append((number, number, [files.place(code.co_filename, line)]))
        before = line
    return "\n".join(lines), blocks
