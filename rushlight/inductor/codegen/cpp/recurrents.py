"""Steps of recurrent layers and of their backward as C++: calls of recurrent.h and recurrent_backward.h."""

from __future__ import annotations

from collections.abc import Callable

from rushlight.inductor.codegen.cpp.packing import WIDEST_PANEL, PackedOperand, texts
from rushlight.inductor.codegen.cpp.types import size_text
from rushlight.inductor.ir import TemplateBuffer
from rushlight.inductor.sizes import as_size

STEPS = {"rnn_relu": "rnn_step<true>", "rnn_tanh": "rnn_step<false>", "lstm": "lstm_step", "gru": "gru_step"}
BACK = {"rnn_relu": "rnn_back<true>", "rnn_tanh": "rnn_back<false>", "lstm": "lstm_back", "gru": "gru_back"}


class RecurrentWriter:
    """The part of `TemplateKernel` for recurrent layers. The method `_KIND` writes the call for templates of that kind."""

    def _recurrent(self) -> list[str]:
        return self._call_for_passes("recurrent_pass", "recurrent_steps", STEPS, self._gate_panels, self._recurrent_pass)

    def _recurrent_backward(self) -> list[str]:
        return self._call_for_passes("recurrent_back_pass", "recurrent_back", BACK, self._panels_back, self._pass_back)

    def _call_for_passes(
        self, kind: str, function: str, layers: dict[str, str], pack: Callable[[TemplateBuffer], tuple[str, list[str]]],
        fields: Callable[[TemplateBuffer, str], list[str]],
    ) -> list[str]:  # fmt: skip
        """Return one call for all layers of the group, which run at the same time."""
        packing, passes = [], []
        for member in self.group.members:
            panels, lines = pack(member)
            packing += lines
            passes.append(f"  {{{', '.join(fields(member, panels))}}},")
        call = f"rl::{function}<rl::{layers[self.template.parameters['layer']]}>(passes, {len(passes)});"
        return [*packing, f"const rl::{kind} passes[] = {{", *passes, "};", call]

    def _gate_panels(self, member: TemplateBuffer) -> tuple[str, list[str]]:
        """Return the parameter of the packed recurrent weights, and the statements that pack weights that are not constant."""
        weight, hidden, gates = member.operands["weight"], member.parameters["hidden"], member.parameters["gates"]
        strides = "_".join(map(str, weight.strides))
        columns = gates * -(-hidden // WIDEST_PANEL) * WIDEST_PANEL
        name, constant = f"gates_{weight.buffer}_{weight.offset}_{strides}", member.parameters["packed_once"]
        arguments = texts(*weight.strides, gates, hidden)
        operand = PackedOperand(name, weight, hidden, columns, constant, "rl::pack_gates", arguments)
        return self.take_packed(operand, member.name)

    def _panels_back(self, member: TemplateBuffer) -> tuple[str, list[str]]:
        """Return the parameter and packing statements of the backward's weights."""
        weight, hidden = member.operands["weight"], member.parameters["hidden"]
        depth = member.parameters["gates"] * hidden
        arguments = texts(*weight.strides, depth, hidden)
        return self.take_packed(PackedOperand("", weight, depth, hidden, False, "rl::pack_b", arguments), member.name)

    def _begin_pass(self, member: TemplateBuffer) -> list[str]:
        """Return the first fields of a pass."""
        parameters = member.parameters
        steps, batch, hidden = (parameters[size] for size in ("steps", "batch", "hidden"))
        self.kernel.work = as_size(self.kernel.work + 2 * parameters["gates"] * steps * batch * hidden * hidden)
        return [texts(steps, batch, hidden), "true" if parameters["reverse"] else "false"]

    def _operand_pointers(self, member: TemplateBuffer, *names: str) -> list[str]:
        """Return the addresses of operands; null for operands that the template lacks."""
        operands = member.operands
        return [self.pointer_to(operands[name]) if name in operands else "nullptr" for name in names]

    def _pass_back(self, member: TemplateBuffer, panels: str) -> list[str]:
        """Return the fields of a rl::recurrent_back_pass."""
        parameters, out = member.parameters, self.pointer(member.name, write=True)
        steps, batch, hidden, gates = (parameters[size] for size in ("steps", "batch", "hidden", "gates"))
        into, cells = as_size(steps * batch * hidden * gates), as_size(batch * hidden)
        into_hidden = f"{out} + {size_text(into)}" if parameters["apart"] else out
        to_state = as_size((1 + parameters["apart"]) * into)
        carried = f"{out} + {size_text(as_size(to_state + cells))}" if parameters["carries"] else "nullptr"
        return [
            *self._begin_pass(member), *self._operand_pointers(member, "grad_output", "grad_state", "grad_cell"), panels,
            *self._operand_pointers(member, "state", "cell", "output", "workspace"), out, into_hidden,
            f"{out} + {size_text(to_state)}", carried,
        ]  # fmt: skip

    def _recurrent_pass(self, member: TemplateBuffer, panels: str) -> list[str]:
        """Return the fields of a rl::recurrent_pass."""
        parameters = member.parameters
        steps, batch, hidden = (parameters[size] for size in ("steps", "batch", "hidden"))
        outputs, cells = as_size(steps * batch * hidden), as_size(batch * hidden)
        begin, (gates, *given) = self._begin_pass(member), self._operand_pointers(member, "gates", "state", "cell", "bias")
        out, has_cell = self.pointer(member.name, write=True), "cell" in member.operands
        workspace = as_size(outputs + cells) if has_cell else outputs
        return [
            *begin, gates, panels, *given, out, f"{out} + {size_text(outputs)}" if has_cell else "nullptr",
            f"{out} + {size_text(workspace)}" if parameters["saves"] else "nullptr",
        ]  # fmt: skip
