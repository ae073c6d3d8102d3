"""LSTM and GRU on float tensors with qint8 or float16 weights."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Iterator
from typing import Any, Optional, Tuple  # noqa: UP035  (scripted)

from rushlight.ao.nn.quantized.dynamic.modules.linear import dynamic_observer
from rushlight.ao.nn.quantized.dynamic.modules.packing import as_quantized, pack_weight_bias, placeholder, taken_from
from rushlight.core.dtype import dtype, float32, qint8
from rushlight.core.tensor import Tensor
from rushlight.jit.decorators import export, ignore
from rushlight.nn import modules as floats
from rushlight.nn.modules.container import ModuleList
from rushlight.nn.modules.module import Module
from rushlight.nn.utils.rnn import PackedSequence
from rushlight.ops.packet import namespaces

__all__ = ["GRU", "LSTM", "PackedParameter", "RNNBase", "apply_permutation", "pack_weight_bias"]

aten, quantized = namespaces.namespace("aten"), namespaces.namespace("quantized")
_GATES = {"LSTM": 4, "GRU": 3}


def _apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    return tensor.index_select(dim, permutation)


def apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    """Return `tensor.index_select(dim, permutation)`."""
    return _apply_permutation(tensor, permutation, dim)


class PackedParameter(Module):
    """The packed weights of one layer and direction: `param`, which is also their name in states."""

    def __init__(self, param: Any) -> None:
        super().__init__()
        self.param = param

    def _save_to_state_dict(self, destination, prefix, keep_vars) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "param"] = self.param

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ) -> None:
        if prefix + "param" not in state_dict:
            missing_keys.append(prefix + "param")
            return
        self.param = taken_from(state_dict, prefix + "param")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs)


class RNNBase(Module):
    """The base of both. `dtype` is qint8 or float16; the other arguments are those of `nn.LSTM`, without `proj_size`.

    Weights are random until `from_float`, `set_weight_bias` or a state sets them.
    """

    _version = 2

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, dtype: dtype = qint8,
    ) -> None:  # fmt: skip
        super().__init__()
        if not isinstance(dropout, numbers.Number) or not 0 <= dropout <= 1 or isinstance(dropout, bool):
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed, got "
                f"{dropout!r}"
            )
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers "
                f"greater than 1, but got dropout={dropout} and num_layers={num_layers}",
                stacklevel=3,
            )
        if mode not in _GATES:
            raise ValueError(f"Unrecognized RNN mode: {mode}")
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout, self.bidirectional = bias, batch_first, float(dropout), bidirectional
        self.dtype = dtype
        self.version = 2
        self.training = False
        self._take(self._placeholders())

    def _placeholders(self) -> Iterator[tuple[Tensor, ...]]:
        rows, directions = _GATES[self.mode] * self.hidden_size, 2 if self.bidirectional else 1
        for layer in range(self.num_layers):
            width = self.hidden_size * directions if layer else self.input_size
            for _ in range(directions):
                weights = (placeholder(rows, columns, self.dtype, 0.1) for columns in (width, self.hidden_size))
                yield *weights, aten.randn.default([rows]), aten.randn.default([rows])

    def _take(self, weights: Iterator[tuple[Tensor, ...]]) -> None:
        """Pack two weights and two biases for each layer and direction."""
        self._all_weight_values = ModuleList([PackedParameter(self._cell(*each)) for each in weights])

    def _cell(self, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor) -> Any:
        kind = qint8 if w_ih.dtype is qint8 else float32
        packed_ih, packed_hh = pack_weight_bias(w_ih, b_ih, kind), pack_weight_bias(w_hh, b_hh, kind)
        if kind is not qint8:
            return quantized.make_quantized_cell_params_fp16(packed_ih, packed_hh)
        reduced = self.version is not None and self.version >= 2
        return quantized.make_quantized_cell_params_dynamic(packed_ih, packed_hh, b_ih, b_hh, reduced)

    def _get_name(self) -> str:
        return "DynamicQuantizedRNN"

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        plain = {"num_layers": 1, "bias": True, "batch_first": False, "dropout": 0, "bidirectional": False}
        return text + "".join(f", {name}={getattr(self, name)}" for name in plain if getattr(self, name) != plain[name])

    def __repr__(self) -> str:
        return f"{self._get_name()}({self.extra_repr()})"

    # Checks

    def check_input(self, input: Tensor, batch_sizes: Optional[Tensor]) -> None:  # noqa: UP045
        """Raise RuntimeError unless the input's dimensions and features fit."""
        expected_input_dim = 2 if batch_sizes is not None else 3
        if input.dim() != expected_input_dim:
            raise RuntimeError(f"input must have {expected_input_dim} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}")

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Optional[Tensor]) -> Tuple[int, int, int]:  # noqa: UP006, UP045
        """Return (layers * directions, batch, hidden size): the shape of a state."""
        if batch_sizes is not None:
            mini_batch = int(batch_sizes[0])
        else:
            mini_batch = input.size(0) if self.batch_first else input.size(1)
        num_directions = 2 if self.bidirectional else 1
        return (self.num_layers * num_directions, mini_batch, self.hidden_size)

    def check_hidden_size(
        self,
        hx: Tensor,
        expected_hidden_size: tuple[int, int, int],
        msg: str = "Expected hidden size {}, got {}",  # noqa: UP006
    ) -> None:
        """Raise RuntimeError unless a state has the shape."""
        if hx.size() != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    # State

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ) -> None:
        self.version = local_metadata.get("version")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs)

    def _suffixes(self) -> list[str]:
        ends = ("", "_reverse") if self.bidirectional else ("",)
        return [f"l{layer}{end}" for layer in range(self.num_layers) for end in ends]

    def set_weight_bias(self, weight_bias_dict: dict[str, Tensor]) -> None:
        """Set weights by their names in a float layer, `weight_ih_l0` and so on: qint8, or float32 for float16."""
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        self._take(tuple(weight_bias_dict[f"{name}_{suffix}"] for name in names) for suffix in self._suffixes())

    def _weight_bias(self) -> dict[str, dict[str, Tensor]]:
        found: dict[str, dict[str, Tensor]] = {"weight": {}, "bias": {}}
        for suffix, each in zip(self._suffixes(), self._all_weight_values, strict=True):
            for name, layer in (("ih", each.param.input_layer), ("hh", each.param.state_layer)):
                found["weight"][f"weight_{name}_{suffix}"], found["bias"][f"bias_{name}_{suffix}"] = layer.unpack()
        return found

    def get_weight(self) -> dict[str, Tensor]:
        """Return the weights, by their names in a float layer."""
        return self._weight_bias()["weight"]

    def get_bias(self) -> dict[str, Tensor]:
        """Return the biases, by their names in a float layer."""
        return self._weight_bias()["bias"]

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> RNNBase:
        """Create the layer from an LSTM or a GRU with a qconfig."""
        if type(mod) not in (floats.LSTM, floats.GRU):
            raise AssertionError(
                f"nn.quantized.dynamic.RNNBase.from_float only works for nn.LSTM and nn.GRU, got {type(mod).__name__}"
            )
        if not mod.bias or getattr(mod, "proj_size", 0):
            raise AssertionError("a recurrent layer without biases, or with projections, can't be quantized")
        kind = dynamic_observer(mod).dtype
        made = (LSTM if type(mod) is floats.LSTM else GRU)(
            mod.input_size, mod.hidden_size, mod.num_layers, mod.bias, mod.batch_first, mod.dropout, mod.bidirectional, kind
        )
        weights = {}
        for suffix in made._suffixes():
            for name in ("ih", "hh"):
                key = f"weight_{name}_{suffix}"
                weights[key] = as_quantized(mod, getattr(mod, key), kind)
                weights[f"bias_{name}_{suffix}"] = getattr(mod, f"bias_{name}_{suffix}")
        made.set_weight_bias(weights)
        return made

    @classmethod
    def from_reference(cls, ref_mod: Module) -> RNNBase:
        """Create the layer from a reference module, which computes in floats with quantized weights."""
        made = cls(
            ref_mod.input_size, ref_mod.hidden_size, ref_mod.num_layers, ref_mod.bias, ref_mod.batch_first, ref_mod.dropout,
            ref_mod.bidirectional, ref_mod.weight_ih_l0_dtype,
        )  # fmt: skip
        made.set_weight_bias(ref_mod.get_quantized_weight_bias_dict())
        return made


class LSTM(RNNBase):
    """`nn.LSTM`, less `proj_size`, over padded or packed sequences."""

    _FLOAT_MODULE = floats.LSTM
    __overloads__ = {"forward": ["forward_packed", "forward_tensor"]}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def _get_name(self) -> str:
        return "DynamicQuantizedLSTM"

    def forward_impl(
        self,
        input: Tensor,
        hx: Optional[Tuple[Tensor, Tensor]],  # noqa: UP006, UP045
        batch_sizes: Optional[Tensor],  # noqa: UP045
        max_batch_size: int,
        sorted_indices: Optional[Tensor],  # noqa: UP045
    ) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:  # noqa: UP006
        if hx is None:
            num_directions = 2 if self.bidirectional else 1
            zeros = aten.zeros(
                [self.num_layers * num_directions, max_batch_size, self.hidden_size], dtype=input.dtype, device=input.device
            )
            hx = (zeros, zeros)
        else:
            hx = self.permute_hidden(hx, sorted_indices)
        self.check_forward_args(input, hx, batch_sizes)
        _all_params = [m.param for m in self._all_weight_values]
        states = [hx[0], hx[1]]
        if batch_sizes is None:
            result = aten.quantized_lstm(
                input, states, _all_params, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional,
                self.batch_first, dtype=self.dtype, use_dynamic=True,
            )  # fmt: skip
        else:
            result = aten.quantized_lstm(
                input, batch_sizes, states, _all_params, self.bias, self.num_layers, self.dropout, self.training,
                self.bidirectional, dtype=self.dtype, use_dynamic=True,
            )  # fmt: skip
        return result[0], (result[1], result[2])

    @export
    def forward_tensor(
        self,
        input: Tensor,
        hx: Optional[Tuple[Tensor, Tensor]] = None,  # noqa: UP006, UP045
    ) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:  # noqa: UP006
        max_batch_size = input.size(0) if self.batch_first else input.size(1)
        output, hidden = self.forward_impl(input, hx, None, max_batch_size, None)
        return output, hidden

    @export
    def forward_packed(
        self,
        input: PackedSequence,
        hx: Optional[Tuple[Tensor, Tensor]] = None,  # noqa: UP006, UP045
    ) -> Tuple[PackedSequence, Tuple[Tensor, Tensor]]:  # noqa: UP006
        input_, batch_sizes, sorted_indices, unsorted_indices = input
        max_batch_size = int(batch_sizes[0])
        output_, hidden = self.forward_impl(input_, hx, batch_sizes, max_batch_size, sorted_indices)
        output = PackedSequence(output_, batch_sizes, sorted_indices, unsorted_indices)
        return output, self.permute_hidden(hidden, unsorted_indices)

    def permute_hidden(
        self,
        hx: Tuple[Tensor, Tensor],  # noqa: UP006
        permutation: Optional[Tensor],  # noqa: UP045
    ) -> Tuple[Tensor, Tensor]:  # noqa: UP006
        """Return the states with sequences reordered."""
        if permutation is None:
            return hx
        return _apply_permutation(hx[0], permutation), _apply_permutation(hx[1], permutation)

    def check_forward_args(
        self,
        input: Tensor,
        hidden: Tuple[Tensor, Tensor],  # noqa: UP006
        batch_sizes: Optional[Tensor],  # noqa: UP045
    ) -> None:
        """Raise RuntimeError unless input and states fit the layer and each other."""
        self.check_input(input, batch_sizes)
        expected_hidden_size = self.get_expected_hidden_size(input, batch_sizes)
        self.check_hidden_size(hidden[0], expected_hidden_size, "Expected hidden[0] size {}, got {}")
        self.check_hidden_size(hidden[1], expected_hidden_size, "Expected hidden[1] size {}, got {}")

    @ignore
    def forward(self, input: Any, hx: Any = None) -> Any:
        """Return output and states, (h_n, c_n)."""
        return self.forward_packed(input, hx) if isinstance(input, PackedSequence) else self.forward_tensor(input, hx)


class GRU(RNNBase):
    """`nn.GRU` over padded or packed sequences."""

    _FLOAT_MODULE = floats.GRU
    __overloads__ = {"forward": ["forward_packed", "forward_tensor"]}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("GRU", *args, **kwargs)

    def _get_name(self) -> str:
        return "DynamicQuantizedGRU"

    def forward_impl(
        self,
        input: Tensor,
        hx: Optional[Tensor],  # noqa: UP045
        batch_sizes: Optional[Tensor],  # noqa: UP045
        max_batch_size: int,
        sorted_indices: Optional[Tensor],  # noqa: UP045
    ) -> Tuple[Tensor, Tensor]:  # noqa: UP006
        if hx is None:
            num_directions = 2 if self.bidirectional else 1
            hx = aten.zeros(
                [self.num_layers * num_directions, max_batch_size, self.hidden_size], dtype=input.dtype, device=input.device
            )
        else:
            hx = self.permute_hidden(hx, sorted_indices)
        self.check_forward_args(input, hx, batch_sizes)
        _all_params = [m.param for m in self._all_weight_values]
        if batch_sizes is None:
            result = aten.quantized_gru(
                input, hx, _all_params, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional,
                self.batch_first,
            )  # fmt: skip
        else:
            result = aten.quantized_gru(
                input, batch_sizes, hx, _all_params, self.bias, self.num_layers, self.dropout, self.training,
                self.bidirectional,
            )  # fmt: skip
        return result[0], result[1]

    @export
    def forward_tensor(
        self,
        input: Tensor,
        hx: Optional[Tensor] = None,  # noqa: UP045
    ) -> Tuple[Tensor, Tensor]:  # noqa: UP006
        max_batch_size = input.size(0) if self.batch_first else input.size(1)
        output, hidden = self.forward_impl(input, hx, None, max_batch_size, None)
        return output, hidden

    @export
    def forward_packed(
        self,
        input: PackedSequence,
        hx: Optional[Tensor] = None,  # noqa: UP045
    ) -> Tuple[PackedSequence, Tensor]:  # noqa: UP006
        input_, batch_sizes, sorted_indices, unsorted_indices = input
        max_batch_size = int(batch_sizes[0])
        output_, hidden = self.forward_impl(input_, hx, batch_sizes, max_batch_size, sorted_indices)
        output = PackedSequence(output_, batch_sizes, sorted_indices, unsorted_indices)
        return output, self.permute_hidden(hidden, unsorted_indices)

    def permute_hidden(self, hx: Tensor, permutation: Optional[Tensor]) -> Tensor:  # noqa: UP045
        """Return the state with sequences reordered."""
        if permutation is None:
            return hx
        return _apply_permutation(hx, permutation)

    def check_forward_args(self, input: Tensor, hidden: Tensor, batch_sizes: Optional[Tensor]) -> None:  # noqa: UP045
        """Raise RuntimeError unless input and state fit the layer and each other."""
        self.check_input(input, batch_sizes)
        expected_hidden_size = self.get_expected_hidden_size(input, batch_sizes)
        self.check_hidden_size(hidden, expected_hidden_size, "Expected hidden size {}, got {}")

    @ignore
    def forward(self, input: Any, hx: Any = None) -> Any:
        """Return output and state."""
        return self.forward_packed(input, hx) if isinstance(input, PackedSequence) else self.forward_tensor(input, hx)
