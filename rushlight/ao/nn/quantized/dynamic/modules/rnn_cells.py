"""Recurrent cells, for single steps, with qint8 or float16 weights."""

from __future__ import annotations

from typing import Any, Optional, Tuple  # noqa: UP035  (scripted)

from rushlight.ao.nn.quantized.dynamic.modules.linear import dynamic_observer
from rushlight.ao.nn.quantized.dynamic.modules.packing import as_quantized, pack_weight_bias, placeholder, taken_from
from rushlight.core.dtype import dtype, qint8
from rushlight.core.tensor import Tensor
from rushlight.nn import modules as floats
from rushlight.nn.modules.module import Module
from rushlight.ops.packet import namespaces

__all__ = ["GRUCell", "LSTMCell", "RNNCell", "RNNCellBase"]

aten, quantized = namespaces.namespace("aten"), namespaces.namespace("quantized")


class RNNCellBase(Module):
    """The base of cells. States store packed weights with biases as "_packed_weight_ih" and "_packed_weight_hh"."""

    __constants__ = ["input_size", "hidden_size", "bias"]

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, num_chunks: int = 4, dtype: dtype = qint8) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias, self.weight_dtype = input_size, hidden_size, bias, dtype
        rows = num_chunks * hidden_size
        if bias:
            self.bias_ih, self.bias_hh = aten.randn.default([rows]), aten.randn.default([rows])
        else:
            self.register_parameter("bias_ih", None)
            self.register_parameter("bias_hh", None)
        self._packed_weight_ih = pack_weight_bias(placeholder(rows, input_size, dtype, 1.0), self.bias_ih, dtype)
        self._packed_weight_hh = pack_weight_bias(placeholder(rows, hidden_size, dtype, 1.0), self.bias_hh, dtype)

    def _get_name(self) -> str:
        return f"DynamicQuantized{type(self).__name__}"

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text

    def check_forward_input(self, input):
        """Raise RuntimeError unless the input has as many features as the cell takes."""
        if input.size(1) != self.input_size:
            raise RuntimeError(f"input has inconsistent input_size: got {input.size(1)}, expected {self.input_size}")

    def check_forward_hidden(self, input: Tensor, hx: Tensor, hidden_label: str = "") -> None:
        """Raise RuntimeError unless a state fits the input and the cell."""
        if input.size(0) != hx.size(0):
            raise RuntimeError(f"Input batch size {input.size(0)} doesn't match hidden{hidden_label} batch size {hx.size(0)}")
        if hx.size(1) != self.hidden_size:
            raise RuntimeError(
                f"hidden{hidden_label} has inconsistent hidden_size: got {hx.size(1)}, expected {self.hidden_size}"
            )

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> RNNCellBase:
        """Create the cell from a float one with a qconfig."""
        kinds = {floats.LSTMCell: LSTMCell, floats.GRUCell: GRUCell, floats.RNNCell: RNNCell}
        if type(mod) not in kinds:
            raise AssertionError(
                "nn.quantized.dynamic.RNNCellBase.from_float only works for nn.LSTMCell, nn.GRUCell and nn.RNNCell, got "
                f"{type(mod).__name__}"
            )
        if not mod.bias:
            raise AssertionError("mod.bias must be True")
        kind = dynamic_observer(mod).dtype
        more = {"nonlinearity": mod.nonlinearity} if type(mod) is floats.RNNCell else {}
        made = kinds[type(mod)](mod.input_size, mod.hidden_size, bias=mod.bias, dtype=kind, **more)
        made._packed_weight_ih = pack_weight_bias(as_quantized(mod, mod.weight_ih, kind), mod.bias_ih, kind)
        made._packed_weight_hh = pack_weight_bias(as_quantized(mod, mod.weight_hh, kind), mod.bias_hh, kind)
        return made

    @classmethod
    def from_reference(cls, ref_mod: Module) -> RNNCellBase:
        """Create the cell from a reference module, which computes in floats with quantized weights."""
        more = {"nonlinearity": ref_mod.nonlinearity} if hasattr(ref_mod, "nonlinearity") else {}
        made = cls(ref_mod.input_size, ref_mod.hidden_size, bias=ref_mod.bias, dtype=ref_mod.weight_ih_dtype, **more)
        weights = {"weight_ih": ref_mod.get_quantized_weight_ih(), "weight_hh": ref_mod.get_quantized_weight_hh()}
        made.set_weight_bias({"weight": weights, "bias": {"bias_ih": ref_mod.bias_ih, "bias_hh": ref_mod.bias_hh}})
        return made

    def _weight_bias(self) -> dict[str, dict[str, Tensor]]:
        found: dict[str, dict[str, Tensor]] = {"weight": {}, "bias": {}}
        for name, packed in (("ih", self._packed_weight_ih), ("hh", self._packed_weight_hh)):
            found["weight"][f"weight_{name}"], found["bias"][f"bias_{name}"] = packed.unpack()
        return found

    def get_weight(self) -> dict[str, Tensor]:
        """Return the weights by their names in a float cell."""
        return self._weight_bias()["weight"]

    def get_bias(self) -> dict[str, Tensor]:
        """Return the biases by their names in a float cell."""
        return self._weight_bias()["bias"]

    def set_weight_bias(self, weight_bias_dict: dict[str, dict[str, Tensor]]) -> None:
        """Set weights and biases, in the form of `_weight_bias`."""
        weights, biases = weight_bias_dict["weight"], weight_bias_dict["bias"]
        self._packed_weight_ih = pack_weight_bias(weights["weight_ih"], biases["bias_ih"], self.weight_dtype)
        self._packed_weight_hh = pack_weight_bias(weights["weight_hh"], biases["bias_hh"], self.weight_dtype)

    def _save_to_state_dict(self, destination, prefix, keep_vars) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "_packed_weight_ih"] = self._packed_weight_ih
        destination[prefix + "_packed_weight_hh"] = self._packed_weight_hh

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ) -> None:
        for name in ("_packed_weight_ih", "_packed_weight_hh"):
            if prefix + name in state_dict:
                setattr(self, name, taken_from(state_dict, prefix + name))
            else:
                missing_keys.append(prefix + name)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs)


class RNNCell(RNNCellBase):
    """`nn.RNNCell`."""

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", dtype: dtype = qint8
    ) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=1, dtype=dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tensor:  # noqa: UP045
        self.check_forward_input(input)
        if hx is None:
            hx = aten.zeros([input.size(0), self.hidden_size], dtype=input.dtype, device=input.device)
        self.check_forward_hidden(input, hx, "")
        if self.nonlinearity == "tanh":
            return quantized.quantized_rnn_tanh_cell_dynamic(
                input, hx, self._packed_weight_ih, self._packed_weight_hh, self.bias_ih, self.bias_hh
            )
        elif self.nonlinearity == "relu":
            return quantized.quantized_rnn_relu_cell_dynamic(
                input, hx, self._packed_weight_ih, self._packed_weight_hh, self.bias_ih, self.bias_hh
            )
        else:
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")


class LSTMCell(RNNCellBase):
    """`nn.LSTMCell`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, num_chunks=4, **kwargs)

    def forward(
        self,
        input: Tensor,
        hx: Optional[Tuple[Tensor, Tensor]] = None,  # noqa: UP006, UP045
    ) -> Tuple[Tensor, Tensor]:  # noqa: UP006
        self.check_forward_input(input)
        if hx is None:
            zeros = aten.zeros([input.size(0), self.hidden_size], dtype=input.dtype, device=input.device)
            hx = (zeros, zeros)
        self.check_forward_hidden(input, hx[0], "[0]")
        self.check_forward_hidden(input, hx[1], "[1]")
        return quantized.quantized_lstm_cell_dynamic(
            input, [hx[0], hx[1]], self._packed_weight_ih, self._packed_weight_hh, self.bias_ih, self.bias_hh
        )


class GRUCell(RNNCellBase):
    """`nn.GRUCell`."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, dtype: dtype = qint8) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=3, dtype=dtype)

    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tensor:  # noqa: UP045
        self.check_forward_input(input)
        if hx is None:
            hx = aten.zeros([input.size(0), self.hidden_size], dtype=input.dtype, device=input.device)
        self.check_forward_hidden(input, hx, "")
        return quantized.quantized_gru_cell_dynamic(
            input, hx, self._packed_weight_ih, self._packed_weight_hh, self.bias_ih, self.bias_hh
        )
