"""Functions and classes to tree views: the first stage of `script`.

In: Python functions and classes whose source can be read, or source text. Out: `Def` and `ClassDef` trees. NotSupportedError
for signatures that TorchScript lacks, OSError where there is no source. Stage: jit, frontend.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from rushlight.jit.errors import FrontendError, NotSupportedError
from rushlight.jit.frontend.context import SourceContext
from rushlight.jit.frontend.expressions import build_expression, build_optional
from rushlight.jit.frontend.statements import build_statements, type_comment
from rushlight.jit.source import NO_SOURCE, Source, SourceRange
from rushlight.jit.tree_views import Assign, ClassDef, Decl, Def, Dots, Ident, Param, Property, Tree, Var

_NO_VARIADICS = "Compiled functions can't take variable number of arguments or use keyword-only arguments with defaults"


def read_source(definition: Callable | type) -> Source:
    """Return the source of a function or class, with its position in its file. OSError if Python has none."""
    try:
        lines, first_line = inspect.getsourcelines(definition)
        filename = inspect.getsourcefile(definition)
        if isinstance(definition, type):
            lines, first_line = _class_lines(definition, lines, first_line)
    except (OSError, TypeError) as error:
        raise OSError(
            f"Can't get source for {definition}. TorchScript requires source access in order to carry out compilation; "
            "make sure the original .py files are available."
        ) from error
    return Source("".join(lines), filename, max(0, first_line - 1))


def _class_lines(kind: type, lines: list[str], first_line: int) -> tuple[list[str], int]:
    """Return the lines of a class, given those that `inspect` finds: of classes of one name it takes any."""
    starts = [each.__code__.co_firstlineno for each in vars(kind).values()
              if inspect.isfunction(each) and each.__qualname__ == f"{kind.__qualname__}.{each.__name__}"]  # fmt: skip
    if not starts or first_line <= min(starts) < first_line + len(lines):
        return lines, first_line
    everything, _ = inspect.findsource(inspect.getmodule(kind))
    for node in ast.walk(ast.parse("".join(everything))):
        if isinstance(node, ast.ClassDef) and node.name == kind.__name__ and node.lineno <= min(starts) <= node.end_lineno:
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            return everything[first - 1 : node.end_lineno], first
    return lines, first_line


_SYNTAX_ERRORS = (
    ("unterminated string literal", "expected a valid token"),
    ("illegal expression for augmented assignment", "augmented assignment can only have one LHS expression"),
    ("cannot assign to", "unexpected expression on left-hand side of assignment"),
)
"""Parts of the messages of Python's parser, and what they mean here."""


def _syntax_error(source: Source, error: SyntaxError, extra_lines: int) -> FrontendError:
    meaning = next((meaning for part, meaning in _SYNTAX_ERRORS if part in error.msg), "expected valid Python")
    line = min(max(1, (error.lineno or 1) - extra_lines), len(source.line_starts))
    start = source.line_starts[line - 1]
    return FrontendError(SourceRange(source, start, start + len(source.line(line - 1))), f"{meaning}: {error.msg}")


def parse(source: Source) -> tuple[list[ast.stmt], SourceContext]:
    """Return the statements of a source text, which may be indented as a whole, and their context."""
    code = (line for line in source.text.splitlines() if line.strip() and not line.lstrip().startswith("#"))
    indented = next(code, "").startswith((" ", "\t"))
    text = "if True:\n" + source.text if indented else source.text
    try:
        module = ast.parse(text, type_comments=True)
    except SyntaxError:  # a comment looks like a type comment, but stands where Python allows none
        try:
            module = ast.parse(text)
        except SyntaxError as error:
            raise _syntax_error(source, error, int(indented)) from None
    body = module.body[0].body if indented else module.body
    return body, SourceContext(source, int(indented))


def get_jit_def(function: Callable, name: str | None = None, self_name: str | None = None) -> Def:
    """Return the tree of a Python function, named `name`; `self_name` is the class of a method's first parameter."""
    function = inspect.unwrap(function)
    source = read_source(function)
    body, context = parse(source)
    found = body[0] if len(body) == 1 else None
    if not isinstance(found, ast.FunctionDef):
        raise RuntimeError(f"Expected a single top-level function: {source.filename}:{source.first_line + 1}")
    return build_def(context, found, name or function.__name__, self_name)


def build_def(context: SourceContext, node: ast.FunctionDef, name: str, self_name: str | None = None) -> Def:
    """Return the tree of a function definition."""
    where = context.word(node, "def")
    params = build_params(context, node.args, self_name)
    return_type = build_optional(context, node.returns)
    if node.type_comment:
        params, return_type = _merge_type_comment(context, node, params, self_name is not None)
    return Def(where, Ident(where, name), Decl(where, params, return_type), build_statements(context, node.body))


def definitions_of_text(text: str, self_name: str | None = None) -> list[Def]:
    """Return the trees of the functions in a source text; with `self_name`, they are methods of that class."""
    body, context = parse(Source(text))
    wrong = next((each for each in body if not isinstance(each, ast.FunctionDef)), None)
    if wrong is not None:
        raise NotSupportedError(context.range(wrong), "only function definitions can stand here")
    return [build_def(context, each, each.name, self_name) for each in body]


def defaults_of_text(text: str) -> list[dict[str, object]]:
    """Return, for each function of a source text, the defaults of its parameters by name. NotSupportedError for a default that
    is not a literal."""
    body, context = parse(Source(text))
    return [_literal_defaults(context, each.args) for each in body if isinstance(each, ast.FunctionDef)]


def _literal_defaults(context: SourceContext, arguments: ast.arguments) -> dict[str, object]:
    positional = [*arguments.posonlyargs, *arguments.args]
    found = {}
    for argument, default in zip(reversed(positional), reversed(arguments.defaults), strict=False):
        try:
            found[argument.arg] = ast.literal_eval(default)
        except ValueError:
            raise NotSupportedError(context.range(default), "defaults in source text must be literals") from None
    return found


def build_params(context: SourceContext, arguments: ast.arguments, self_name: str | None) -> list[Param]:
    """Return the parameters of a function."""
    variadic = arguments.vararg or arguments.kwarg
    if variadic is not None:
        raise NotSupportedError(context.range(variadic), _NO_VARIADICS)
    defaulted = next((each for each in arguments.kw_defaults if each is not None), None)
    if defaulted is not None:
        raise NotSupportedError(context.range(defaulted), _NO_VARIADICS)
    positional = [*arguments.posonlyargs, *arguments.args]
    params = [_build_param(context, each, False, self_name if index == 0 else None) for index, each in enumerate(positional)]
    return params + [_build_param(context, each, True, None) for each in arguments.kwonlyargs]


def _build_param(context: SourceContext, node: ast.arg, kwarg_only: bool, self_name: str | None) -> Param:
    where = context.word(node, node.arg)
    annotation = build_optional(context, node.annotation)
    if annotation is None and node.type_comment:
        annotation = type_comment(context, node, node.type_comment)
    if annotation is None and self_name is not None:
        annotation = Var(where, Ident(where, self_name))
    return Param(where, annotation, Ident(where, node.arg), kwarg_only)


def _merge_type_comment(
    context: SourceContext, node: ast.FunctionDef, params: list[Param], is_method: bool
) -> tuple[list[Param], Tree | None]:
    """Return the parameters and the return type, with the types of a comment `# type: (int, Tensor) -> Tensor`."""
    where = context.word(node, "def")
    types, returned = parse_signature(node.type_comment.strip(), where)
    return merge_types(where, params, types, is_method), returned


def parse_signature(text: str, where: SourceRange) -> tuple[list[Tree], Tree | None]:
    """Parse `(int, Tensor) -> Tensor`: the types of parameters, and the return type, all with the range `where`. Without an
    arrow the return type is None: it is inferred. NotSupportedError for other texts."""
    has_result = "->" in text
    try:
        signature = ast.parse(text if has_result else f"{text} -> None", mode="func_type")
    except SyntaxError:
        message = f"the type comment {text!r} is not of the form (types) -> type"
        raise NotSupportedError(where, message) from None
    context = _OnePlace(where.source, where)
    types = [build_expression(context, each) for each in signature.argtypes]
    return types, build_expression(context, signature.returns) if has_result else None


@dataclass(frozen=True)
class _OnePlace(SourceContext):
    """A context that gives all nodes one range."""

    place: SourceRange = NO_SOURCE

    def __init__(self, source: Source, place: SourceRange) -> None:
        super().__init__(source)
        object.__setattr__(self, "place", place)

    def range(self, node: ast.AST) -> SourceRange:
        return self.place

    def word(self, node: ast.AST, word: str) -> SourceRange:
        return self.place


def merge_types(where: SourceRange, params: list[Param], types: list[Tree], is_method: bool) -> list[Param]:
    """Return parameters with other types; a comment `(...) -> type` keeps their own types. The first parameter of a method
    may have none.
    """
    if len(types) == 1 and isinstance(types[0], Dots):
        return params
    typed = params[1:] if is_method and len(types) == len(params) - 1 else params
    if len(types) != len(typed):
        raise NotSupportedError(
            where, f"Number of type annotations ({len(types)}) did not match the number of function parameters ({len(typed)}):"
        )
    kept = params[: len(params) - len(typed)]
    return [*kept, *(replace(param, annotation=each) for param, each in zip(typed, types, strict=True))]


def get_jit_class_def(kind: type, self_name: str, skip: Iterable[str] = ()) -> ClassDef:
    """Return the tree of a class: its methods, static methods and properties, except those named in `skip`."""
    source = read_source(kind)
    body, context = parse(source)
    found = body[0] if len(body) == 1 else None
    if not isinstance(found, ast.ClassDef):
        raise RuntimeError(f"Expected a single top-level class: {source.filename}:{source.first_line + 1}")
    return build_class_def(context, found, self_name, frozenset(skip))


def build_class_def(context: SourceContext, node: ast.ClassDef, self_name: str, skip: frozenset[str]) -> ClassDef:
    """Return the tree of a class definition."""
    methods, properties, assignments = [], {}, []
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef) and statement.name not in skip:
            _add_method(context, statement, self_name, methods, properties)
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            assignments.append(_build_class_assignment(context, statement))
    where = context.word(node, "class")
    superclass = build_expression(context, node.bases[0]) if node.bases else None
    return ClassDef(where, Ident(where, self_name), methods, superclass, list(properties.values()), assignments)


def _build_class_assignment(context: SourceContext, node: ast.Assign | ast.AnnAssign) -> Tree:
    if isinstance(node, ast.Assign) or node.value is not None:
        return build_statements(context, [node])[0]
    return Assign(context.range(node), [build_expression(context, node.target)], None,
                  build_expression(context, node.annotation))  # fmt: skip


def _add_method(context: SourceContext, node: ast.FunctionDef, self_name: str, methods: list, properties: dict) -> None:
    decorators = [ast.unparse(each) for each in node.decorator_list]
    where = context.word(node, "def")
    if "property" in decorators:
        getter = build_def(context, node, f"__{node.name}_getter", self_name)
        properties[node.name] = Property(where, Ident(where, node.name), getter, None)
    elif f"{node.name}.setter" in decorators:
        properties[node.name].setter = build_def(context, node, f"__{node.name}_setter", self_name)
    elif "staticmethod" in decorators:
        methods.append(build_def(context, node, node.name, None))
    else:
        methods.append(build_def(context, node, node.name, self_name))
