"""Find the modules that a file imports, from its text, without running it.

In: Python source, and its package. Out: pairs of a module and the name that is imported from it, None for the module itself.
"""

from __future__ import annotations

import ast
from importlib.util import resolve_name

_ARGUMENTS = ("name", "globals", "locals", "fromlist", "level")
"""The parameters of `__import__`."""


def find_files_source_depends_on(src: str, package: str) -> list[tuple[str, str | None]]:
    """Return the imports of a source: of statements, wherever they stand, and of calls of `__import__` with literals.

    SyntaxError for invalid source. ImportError for a relative import beyond the top-level package.
    """
    found: dict[tuple[str, str | None], None] = {}
    nodes = [node for node in ast.walk(ast.parse(src)) if hasattr(node, "lineno")]
    for node in sorted(nodes, key=lambda node: (node.lineno, node.col_offset)):
        found.update(dict.fromkeys(_imports_of(node, package)))
    return list(found)


def _imports_of(node: ast.AST, package: str) -> list[tuple[str, str | None]]:
    if isinstance(node, ast.Import):
        return [(each.name, None) for each in node.names]
    if isinstance(node, ast.ImportFrom):
        return _pairs(_resolve_relative(node.module or "", node.level, package), [each.name for each in node.names])
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "__import__":
        return _call(node, package)
    return []


def _call(node: ast.Call, package: str) -> list[tuple[str, str | None]]:
    given = dict(zip(_ARGUMENTS, node.args, strict=False)) | {each.arg or "": each.value for each in node.keywords}
    try:
        name, names = ast.literal_eval(given["name"]), ast.literal_eval(given.get("fromlist", ast.Constant(())))
        level = ast.literal_eval(given.get("level", ast.Constant(0)))
    except (KeyError, ValueError):
        return []
    if type(name) is not str or type(level) is not int or not isinstance(names, list | tuple):
        return []
    return _pairs(_resolve_relative(name, level, package), [each for each in names if isinstance(each, str)])


def _resolve_relative(name: str, level: int, package: str) -> str:
    return resolve_name("." * level + name, package) if level > 0 else name


def _pairs(module: str, names: list[str]) -> list[tuple[str, str | None]]:
    if not names:
        return [(module, None)]
    return [(module, None if name == "*" else name) for name in names]
