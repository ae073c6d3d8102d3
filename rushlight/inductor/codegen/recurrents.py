"""The steps of LSTM layers as C++: calls of lstm.h."""

from __future__ import annotations

from rushlight.inductor.codegen.packing import WIDEST_PANEL, PackedOperand, texts
from rushlight.inductor.codegen.types import size_text
from rushlight.inductor.ir import TemplateBuffer
from rushlight.inductor.sizes import as_size


class RecurrentWriter:
    """The part of a template's writer that knows recurrent layers; `TemplateKernel` has the rest."""

    def _lstm(self) -> list[str]:
        """All layers of the group, which run at the same time."""
        packing, passes = [], []
        for member in self.group.members:
            panels, lines = self._recurrent_panels(member)
            packing += lines
            passes.append(f"  {{{', '.join(self._lstm_pass(member, panels))}}},")
        count = len(passes)
        return [*packing, "const rl::lstm_pass passes[] = {", *passes, "};", f"rl::lstm_steps(passes, {count});"]

    def _recurrent_panels(self, member: TemplateBuffer) -> tuple[str, list[str]]:
        """The parameter that has the recurrent weights in panels, and the statements that pack those that may change."""
        weight, hidden, gates = member.operands["weight"], member.parameters["hidden"], member.parameters["gates"]
        strides = "_".join(map(str, weight.strides))
        columns = gates * -(-hidden // WIDEST_PANEL) * WIDEST_PANEL
        name, constant = f"gates_{weight.buffer}_{weight.offset}_{strides}", member.parameters["packed_once"]
        arguments = texts(*weight.strides, hidden)
        operand = PackedOperand(name, weight, hidden, columns, constant, "rl::pack_gates", arguments)
        return self.take_packed(operand, member.name)

    def _lstm_pass(self, member: TemplateBuffer, panels: str) -> list[str]:
        """The fields of a rl::lstm_pass."""
        parameters, operands = member.parameters, member.operands
        steps, batch, hidden = (parameters[size] for size in ("steps", "batch", "hidden"))
        outputs, cells = as_size(steps * batch * hidden), as_size(batch * hidden)
        self.kernel.work = as_size(self.kernel.work + 2 * parameters["gates"] * outputs * hidden)
        out = self.pointer(member.name, write=True)
        return [
            texts(steps, batch, hidden), "true" if parameters["reverse"] else "false", self.pointer_to(operands["gates"]),
            panels, self.pointer_to(operands["state"]), self.pointer_to(operands["cell"]), out, f"{out} + {size_text(outputs)}",
            f"{out} + {size_text(as_size(outputs + cells))}" if parameters["saves"] else "nullptr",
        ]  # fmt: skip
