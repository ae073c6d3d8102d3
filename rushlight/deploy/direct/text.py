"""Operators that format text, print it, or raise with it, as C++.

In: nodes. Out: statements. Strings are those of `include/rushlight/deployed_strings.h`.
"""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.compiler.scripted.regions import Unsupported
from rushlight.deploy.direct import tables
from rushlight.deploy.direct.flow import Flow
from rushlight.deploy.direct.values import Operand, line_of
from rushlight.deploy.spelling import c_string
from rushlight.jit.ir.graph import Node
from rushlight.jit.types import kinds as types


class Text(Flow):
    """Writes nodes on text."""

    def _format(self, node: Node) -> bool:
        form, *values = (self.operand(value) for value in node.inputs)
        self._refuse_tensors(values, node)
        text, count = self._emit_array([self.boxed(each) for each in values])
        self.bind(node.output, f"run.format({self.boxed(form)}, {text}, {count})")
        self.check(node)
        return True

    def _write_percent(self, node: Node) -> bool:
        form, *values = (self.operand(value) for value in node.inputs)
        self._refuse_tensors(values, node)
        if len(values) == 1 and isinstance(values[0].type, types.TupleType):
            whole = self.boxed(values[0])
            text, count = f"{whole}.as.list->items", len(values[0].type.elements)
        else:
            text, count = self._emit_array([self.boxed(each) for each in values])
        self.bind(node.output, f"run.percent({self.boxed(form)}, {text}, {count})")
        self.check(node)
        return True

    def _print(self, node: Node) -> bool:
        values = [self.operand(value) for value in node.inputs]
        self._refuse_tensors(values, node)
        text, count = self._emit_array([self.boxed(each) for each in values])
        self.emit(f"run.print({text}, {count});")
        self.check(node)
        return True

    def _emit_array(self, parts: Sequence[str]) -> tuple[str, int]:
        if not parts:
            return "nullptr", 0
        name = self.name("given")
        self.emit(f"const any {name}[] = {{{', '.join(parts)}}};")
        return name, len(parts)

    @staticmethod
    def _refuse_tensors(values: Sequence[Operand], node: Node) -> None:
        if any(each.kind.shape is not None for each in values):
            raise Unsupported(f"{node.kind} of a tensor as text")

    def _write_conversion(self, node: Node) -> bool:
        given = self.operand(node.input())
        self._refuse_tensors([given], node)
        self.bind(node.output, f"run.text({self.boxed(given)})")
        self.check(node)
        return True

    def _write_strip(self, node: Node) -> bool:
        given, chars = self.operand(node.input()), self.operand(node.input(1))
        is_default = chars.is_known and chars.value == " \\n\\t\\f\\v"
        text = self.boxed(self.constant(" \n\t\f\v", types.STRING) if is_default else chars)
        self.bind(node.output, f"run.strip({self.boxed(given)}, {text}, {tables.STRIPS[node.kind]})")
        self.check(node)
        return True

    def _write_affix_test(self, node: Node) -> bool:
        if node.input().type is not types.STRING:
            return False
        bounds = [self.operand(value) for value in node.inputs[2:]]
        if not all(each.is_known for each in bounds) or [each.value for each in bounds] != [0, -1][: len(bounds)]:
            return self._within(node, bounds)
        texts = [self.boxed(self.operand(value)) for value in node.inputs[:2]]
        name = tables.ENDS[node.kind]
        last = {"aten::find": ", false", "aten::rfind": ", true"}.get(node.kind, "")
        self.bind(node.output, f"run.{name}{'_text' if name in ('find', 'count') else ''}({', '.join(texts)}{last})")
        return True

    def _raise(self, node: Node) -> bool:
        message = self.operand(node.input())
        called = self.operand(node.input(1)).value if node.input_count > 1 else None
        prefix = f"{str(called).rpartition('.')[2]}: " if isinstance(called, str) else ""
        if message.type is not types.STRING:
            raise Unsupported("an exception whose message is no string")
        said = self.name("said")
        self.emit(f"const any {said} = {self.boxed(message)};", "if (run.status) return run.status;")
        self.emit(f'run.fail(failed, "%s%.400s", {c_string(prefix)}, {said}.as.text->data);')
        self.emit(f"return run.at({c_string(line_of(node))});")
        self.ended = True
        return True

    def _warn(self, node: Node) -> bool:
        """Write warnings to standard error."""
        text = self.boxed(self.operand(node.input()))
        said = self.name("said")
        self.emit(f"const any {said} = {text};", "if (run.status) return run.status;")
        self.emit(f'fprintf(stderr, "Warning: %s\\n", {said}.as.text->data);')
        return True

    def _within(self, node: Node, bounds: Sequence[Operand]) -> bool:
        """Write a search in a part of a string; an end of -1 means the string's end."""
        first, last = (self.spelled(each, types.INT) for each in bounds)
        given, part = self.boxed(self.operand(node.input())), self.name("part")
        self.emit(f"const int64_t first_{part} = {first}, last_{part} = {last};")
        end = f"last_{part} == -1 ? any{{}} : any_of(last_{part})"
        self.emit(f'if (first_{part} < 0) run.fail(failed, "a search from a place below 0 has no form in C");')
        self.emit(f"const any {part} = run.slice({given}, any_of(first_{part}), {end}, 1);")
        self.check(node)
        name, other = tables.ENDS[node.kind], self.boxed(self.operand(node.input(1)))
        if name == "find":
            is_last = str(node.kind == "aten::rfind").lower()
            self.bind(node.output, f"run.find_text({part}, {other}, {is_last})")
            found = self.operand(node.output)
            found.text = f"({found.text} < 0 ? -1 : {found.text} + first_{part})"
        else:
            self.bind(node.output, f"run.{name}{'_text' * (name == 'count')}({part}, {other})")
        return True
