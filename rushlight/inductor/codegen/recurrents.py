"""The steps of recurrent layers as C++: calls of recurrent.h."""

from __future__ import annotations

from rushlight.inductor.codegen.packing import WIDEST_PANEL, PackedOperand, texts
from rushlight.inductor.codegen.types import size_text
from rushlight.inductor.ir import TemplateBuffer
from rushlight.inductor.sizes import as_size

STEPS = {"rnn_relu": "rnn_step<true>", "rnn_tanh": "rnn_step<false>", "lstm": "lstm_step", "gru": "gru_step"}


class RecurrentWriter:
    """The part of a template's writer that knows recurrent layers; `TemplateKernel` has the rest."""

    def _recurrent(self) -> list[str]:
        """All layers of the group, which run at the same time."""
        packing, passes = [], []
        for member in self.group.members:
            panels, lines = self._recurrent_panels(member)
            packing += lines
            passes.append(f"  {{{', '.join(self._recurrent_pass(member, panels))}}},")
        steps = f"rl::recurrent_steps<rl::{STEPS[self.template.parameters['layer']]}>(passes, {len(passes)});"
        return [*packing, "const rl::recurrent_pass passes[] = {", *passes, "};", steps]

    def _recurrent_panels(self, member: TemplateBuffer) -> tuple[str, list[str]]:
        """The parameter that has the recurrent weights in panels, and the statements that pack those that may change."""
        weight, hidden, gates = member.operands["weight"], member.parameters["hidden"], member.parameters["gates"]
        strides = "_".join(map(str, weight.strides))
        columns = gates * -(-hidden // WIDEST_PANEL) * WIDEST_PANEL
        name, constant = f"gates_{weight.buffer}_{weight.offset}_{strides}", member.parameters["packed_once"]
        arguments = texts(*weight.strides, gates, hidden)
        operand = PackedOperand(name, weight, hidden, columns, constant, "rl::pack_gates", arguments)
        return self.take_packed(operand, member.name)

    def _recurrent_pass(self, member: TemplateBuffer, panels: str) -> list[str]:
        """The fields of a rl::recurrent_pass."""
        parameters = member.parameters
        steps, batch, hidden = (parameters[size] for size in ("steps", "batch", "hidden"))
        outputs, cells = as_size(steps * batch * hidden), as_size(batch * hidden)
        self.kernel.work = as_size(self.kernel.work + 2 * parameters["gates"] * outputs * hidden)
        given = {
            name: self.pointer_to(member.operands[name]) if name in member.operands else "nullptr"
            for name in ("gates", "state", "cell", "bias")
        }
        out, has_cell = self.pointer(member.name, write=True), "cell" in member.operands
        workspace = as_size(outputs + cells) if has_cell else outputs
        return [
            texts(steps, batch, hidden), "true" if parameters["reverse"] else "false", given["gates"], panels, given["state"],
            given["cell"], given["bias"], out, f"{out} + {size_text(outputs)}" if has_cell else "nullptr",
            f"{out} + {size_text(workspace)}" if parameters["saves"] else "nullptr",
        ]  # fmt: skip
