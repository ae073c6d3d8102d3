"""Library calls as C++: a call of a hand-written function of `include/rushlight`, which fills whole buffers.

In: a template of kind "library", and templates of kind "further_result" for additional buffers that the same call fills. Out:
the call, with the addresses of operands and results, then numbers, scratch memory and status.
"""

from __future__ import annotations

from rushlight.core.dtype import dtype
from rushlight.inductor.codegen.cpp.types import c_type, float_literal, size_text
from rushlight.inductor.sizes import Size


class LibraryCallWriter:
    """The part of `TemplateKernel` for library calls. The method `_KIND` writes the call for templates of that kind."""

    def _library(self) -> list[str]:
        parameters = self.template.parameters
        function, scratch = (parameters[name].format(type=c_type(parameters["type"])) for name in ("function", "scratch"))
        self.kernel.header, self.kernel.work = parameters["header"], parameters["work"]
        arguments = [self.pointer_to(operand) for operand in self.template.operands.values()]
        results = {member.parameters["place"]: member.name for member in self.group.members}
        for place in range(parameters["results"]):
            arguments.append(self.pointer(results[place], write=True) if place in results else "nullptr")
        numbers = [_number_text(number) for number in parameters["numbers"]]
        if scratch:
            given = [numbers[place] for place in parameters["scratch_of"]]
            needed = f"rl::{scratch}({', '.join(given)})"
            self.scratch = (f"scratch_{self.template.name}", needed)
            numbers.append(self.extra("char*", "scratch", self.scratch[0]))
        if parameters["reports"]:
            self.kernel.uses_status = True
            numbers.append("status")
        return [f"rl::{function}({', '.join([*arguments, *numbers])});"]


def _number_text(number: Size | float | bool | dtype) -> str:
    if isinstance(number, bool):
        return "true" if number else "false"
    if isinstance(number, float):
        return float_literal(number, "")
    return c_type(number) if isinstance(number, dtype) else size_text(number)
