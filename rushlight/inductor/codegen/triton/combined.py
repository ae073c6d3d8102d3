"""One launch for several groups with equal kernels.

In: launches whose texts differ in numbers only, such as sizes. Out: fewer launches. Each takes the pointers of all of its
members. A program compares its number with the members' counts of programs, in a binary search that is written out, and takes
its member's pointers and numbers. The rest of the text is a member's. Pointers are parameters of the kernel, so nothing has to
be copied to the device when they change, and a captured graph keeps those that it was captured with.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rushlight.inductor.codegen.triton.kernels import Axis, Choice, Launch, indented
from rushlight.inductor.codegen.triton.loops import element_choices
from rushlight.inductor.codegen.triton.types import LIMIT

KINDS = ("pointwise", "tiles", "row", "rows_in_loops")
MAX_PARAMETERS = 508  # a launch's arguments take at most 4 KB; two of them are Triton's own
MAX_DIVISOR = 16  # numbers with the same powers of two up to this one allow the same widths of loads
PROGRAM = "tl.program_id(0)"
_INDICES = frozenset(("x", "y", "r", "x_mask", "y_mask", "r_mask", "y_tiles"))


@dataclass(frozen=True)
class Form:
    """A launch's text as the parts between the numbers that may differ from one member to another, and these numbers. Launches
    with equal keys may be combined."""

    parts: tuple[str, ...]
    numbers: tuple[int, ...]
    key: tuple


def form_of(launch: Launch) -> Form | None:
    """Return the form of a launch; None if it cannot be combined with others."""
    pointers = all(kind.startswith("*") for _, kind in launch.parameters)
    if launch.kind not in KINDS or launch.open or launch.scratch or not pointers or len(launch.grid) != 1:
        return None
    parts, numbers = _split("\n".join(launch.body))
    if any(number >= LIMIT for number in numbers):
        return None
    tile = None if launch.kind == "pointwise" else launch.choice  # elementwise kernels work with blocks of any size
    key = (
        launch.kind, launch.group.constant, parts, tuple(map(_divisor, numbers)), tuple(launch.parameters), repr(tile),
        repr(launch.options), tuple([constant for _, constant in launch.grid[0]]),
    )  # fmt: skip
    return Form(parts, numbers, key)


def _divisor(number: int) -> int:
    return min(number & -number, MAX_DIVISOR) if number else MAX_DIVISOR


@functools.lru_cache(maxsize=256)
def _split(text: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return a text's parts between free numbers, and these numbers."""
    lines, parts, numbers = text.split("\n"), [], []
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    found = sorted((starts[node.lineno - 1] + node.col_offset, node) for node in _free_numbers(ast.parse(text)))
    end = 0
    for start, node in found:
        parts.append(text[end:start])
        numbers.append(node.value)
        end = starts[node.end_lineno - 1] + node.end_col_offset
    return (*parts, text[end:]), tuple(numbers)


def _free_numbers(tree: ast.Module) -> Iterator[ast.Constant]:
    """Return the integers that need not be constants of the kernel: sizes in masks and loops, and strides and offsets."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in _INDICES:
            yield from _numbers_of(node.value)
        elif isinstance(node, ast.For):
            yield from _numbers_of(node.iter)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("tl.load", "tl.store"):
            yield from _numbers_of(node.args[0])


def _numbers_of(node: ast.expr) -> Iterator[ast.Constant]:
    """Return the integers in sums, products and comparisons of an index. Divisors stay constants, by which kernels divide
    faster."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield node
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.FloorDiv | ast.Mod):
        yield from _numbers_of(node.left)
        if not isinstance(node.op, ast.FloorDiv | ast.Mod):
            yield from _numbers_of(node.right)
    elif isinstance(node, ast.Compare):
        yield from _numbers_of(node.left)
        yield from _numbers_of(node.comparators[0])
    elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("range", "tl.cdiv"):
        for argument in node.args:
            yield from _numbers_of(argument)


def combine(members: Sequence[tuple[Launch, Form]], in_place: Mapping[str, str]) -> list[list[tuple[Launch, Form]]]:
    """Return launches with equal keys in lists that fit one launch each. `in_place` maps buffers to the inputs whose memory
    they lie in. Arguments at one address are one parameter."""
    alike: dict[tuple[int, ...], list[tuple[Launch, Form]]] = {}
    for member in members:
        alike.setdefault(_pattern(_resolved(member[0], in_place)), []).append(member)
    found = []
    for pattern, launches in alike.items():
        own, shared = _own_and_shared([_resolved(launch, in_place) for launch, _ in launches], pattern)
        most = max((MAX_PARAMETERS - len(shared)) // max(len(own), 1), 1)
        found += [launches[start : start + most] for start in range(0, len(launches), most)]
    return found


def _resolved(launch: Launch, in_place: Mapping[str, str]) -> list[str]:
    return [in_place.get(argument, argument) for argument in launch.arguments]


def _pattern(arguments: Sequence[str]) -> tuple[int, ...]:
    """Return for each argument the place where it comes first."""
    return tuple([arguments.index(argument) for argument in arguments])


def _own_and_shared(arguments: Sequence[Sequence[str]], pattern: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the places of distinct arguments: those that differ between members, and those that are the same in all."""
    places = [place for place, first in enumerate(pattern) if place == first]
    shared = [place for place in places if len({given[place] for given in arguments}) == 1]
    return [place for place in places if place not in shared], shared


def combined(members: Sequence[tuple[Launch, Form]], in_place: Mapping[str, str]) -> Launch:
    """Return one launch for several, as `combine` groups them."""
    launches, forms = [launch for launch, _ in members], [form for _, form in members]
    first = launches[0]
    resolved = [_resolved(launch, in_place) for launch in launches]
    pattern = _pattern(resolved[0])
    own, shared = _own_and_shared(resolved, pattern)
    names = [name for name, _ in first.parameters]
    made = Launch(f"combined_{first.kind}", first.group, options=first.options, members=launches)
    for place in shared:
        made.parameters.append(first.parameters[place])
        made.arguments.append(first.arguments[place])
    for number, launch in enumerate(launches):
        for place in own:
            made.parameters.append((f"{names[place]}_{number}", first.parameters[place][1]))
            made.arguments.append(launch.arguments[place])
    different = [place for place, value in enumerate(forms[0].numbers) if any(form.numbers[place] != value for form in forms)]
    leaves = [
        [*(f"{names[place]} = {names[place]}_{number}" for place in own),
         *(f"number{place} = {form.numbers[place]}" for place in different)]
        for number, form in enumerate(forms)
    ]  # fmt: skip
    numbers = [f"number{place}" if place in different else str(value) for place, value in enumerate(forms[0].numbers)]
    made.body = [
        f"program = {PROGRAM}",
        *_ends([launch.grid[0] for launch in launches[:-1]]),
        *_search(leaves, 0),
        "program = program - begin",
        *(f"{names[place]} = {names[other]}" for place, other in enumerate(pattern) if place != other),
        *_joined(forms[0].parts, numbers).replace(PROGRAM, "program").split("\n"),
    ]
    made.choice, made.candidates = _choices(launches)
    return made


def _choices(launches: Sequence[Launch]) -> tuple[Choice, list[Choice]]:
    """Return the choice of constants for all members, and the candidates."""
    if launches[0].kind != "pointwise":
        return replace(launches[0].choice), launches[0].candidates
    return element_choices(sum(launch.grid[0][0][0] for launch in launches))


def _joined(parts: Sequence[str], numbers: Sequence[str]) -> str:
    return "".join([text for pair in zip(parts, [*numbers, ""], strict=True) for text in pair])


def _ends(axes: Sequence[Axis]) -> list[str]:
    """Return the lines that count the programs of the first members, of the first two, and so on."""
    lines = []
    for number, axis in enumerate(axes):
        factors = [f"(({size} + {constant} - 1) // {constant})" if constant else f"{size}" for size, constant in axis]
        before = f"end{number - 1} + " if number else ""
        lines.append(f"end{number} = {before}{' * '.join(factors)}")
    return lines


def _search(leaves: Sequence[list[str]], begin: int) -> list[str]:
    """Return the lines that run the leaf of the member that a program belongs to. `begin` is the first leaf's number."""
    if len(leaves) == 1:
        return [*leaves[0], f"begin = end{begin - 1}" if begin else "begin = 0"]
    half = len(leaves) // 2
    return [
        f"if program < end{begin + half - 1}:", *indented(_search(leaves[:half], begin)),
        "else:", *indented(_search(leaves[half:], begin + half)),
    ]  # fmt: skip
