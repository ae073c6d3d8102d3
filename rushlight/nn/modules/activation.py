"""Activation functions as modules."""

from __future__ import annotations

import warnings

from rushlight.core.lazy_module import lazy_names
from rushlight.core.tensor import Tensor
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.creation import new_parameter
from rushlight.nn.modules.module import Module


class _InPlace(Module):
    """An activation that may overwrite its input."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def _inplace_repr(self) -> str:
        return ", inplace=True" if self.inplace else ""

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class ReLU(_InPlace):
    """max(0, x).

    Args:
        inplace (bool): whether to overwrite the input.

    Example:
        >>> torch.nn.ReLU()(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, self.inplace)


class SiLU(_InPlace):
    """x * sigmoid(x).

    Args:
        inplace (bool): whether to overwrite the input.

    Example:
        >>> torch.nn.SiLU()(torch.tensor([-1.0, 2.0]))
        tensor([-0.2689,  1.7616])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, self.inplace)


class Mish(_InPlace):
    """x * tanh(softplus(x)).

    Args:
        inplace (bool): whether to overwrite the input.

    Example:
        >>> torch.nn.Mish()(torch.tensor([-1.0, 2.0]))
        tensor([-0.3034,  1.9440])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, self.inplace)


class SELU(_InPlace):
    """ELU with the self-normalising constants.

    Args:
        inplace (bool): whether to overwrite the input.

    Example:
        >>> torch.nn.SELU()(torch.tensor([-1.0, 2.0]))
        tensor([-1.1113,  2.1014])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


class Hardsigmoid(_InPlace):
    """relu6(x + 3) / 6.

    Args:
        inplace (bool): whether to overwrite the input.

    Example:
        >>> torch.nn.Hardsigmoid()(torch.tensor([-1.0, 2.0]))
        tensor([0.3333, 0.8333])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class Hardswish(_InPlace):
    """x * relu6(x + 3) / 6.

    Args:
        inplace (bool): whether to overwrite the input.

    Example:
        >>> torch.nn.Hardswish()(torch.tensor([-1.0, 2.0]))
        tensor([-0.3333,  1.6667])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class Hardtanh(_InPlace):
    """x bounded to [min_val, max_val]; `min_value` and `max_value` are deprecated names of these.

    Args:
        min_val (float): the lower bound.
        max_val (float): the upper bound.
        inplace (bool): whether to overwrite the input.
        min_value (float | None): deprecated: use `min_val`.
        max_value (float | None): deprecated: use `max_val`.

    Example:
        >>> torch.nn.Hardtanh()(torch.tensor([-1.0, 2.0]))
        tensor([-1.,  1.])
    """

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__(inplace)
        for old, new in (("min_value", "min_val"), ("max_value", "max_val")):
            if (min_value if old == "min_value" else max_value) is not None:
                message = f"keyword argument `{old}` is deprecated and rename to `{new}`"
                warnings.warn(message, FutureWarning, stacklevel=2)
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        if self.max_val <= self.min_val:
            raise ValueError(f"max_val must be larger than min_val, got {self.max_val} and {self.min_val}")

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}{self._inplace_repr()}"


class ReLU6(Hardtanh):
    """min(max(0, x), 6).

    Args:
        inplace (bool): whether to overwrite the input.

    Example:
        >>> torch.nn.ReLU6()(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class Threshold(_InPlace):
    """x where above the threshold, `value` elsewhere.

    Args:
        threshold (float): the threshold.
        value (float): the replacement of elements up to the threshold.
        inplace (bool): whether to overwrite the input.

    Example:
        >>> torch.nn.Threshold(0.5, 9.0)(torch.tensor([-1.0, 2.0]))
        tensor([9., 2.])
    """

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.threshold = threshold
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return f"threshold={self.threshold}, value={self.value}{self._inplace_repr()}"


class _WithAlpha(_InPlace):
    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}{self._inplace_repr()}"


class ELU(_WithAlpha):
    """x where positive, alpha * (exp(x) - 1) elsewhere.

    Args:
        alpha (float): minus the limit for large negative inputs.
        inplace (bool): whether to overwrite the input.

    Example:
        >>> torch.nn.ELU()(torch.tensor([-1.0, 2.0]))
        tensor([-0.6321,  2.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)


class CELU(_WithAlpha):
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1)).

    Args:
        alpha (float): minus the limit for large negative inputs.
        inplace (bool): whether to overwrite the input.

    Example:
        >>> torch.nn.CELU()(torch.tensor([-1.0, 2.0]))
        tensor([-0.6321,  2.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)


class LeakyReLU(_InPlace):
    """x where positive, negative_slope * x elsewhere.

    Args:
        negative_slope (float): the slope below 0.
        inplace (bool): whether to overwrite the input.

    Example:
        >>> torch.nn.LeakyReLU()(torch.tensor([-1.0, 2.0]))
        tensor([-0.0100,  2.0000])
    """

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.negative_slope = negative_slope

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}{self._inplace_repr()}"


class RReLU(_InPlace):
    """LeakyReLU whose slope is drawn from [lower, upper] per element in training, and their mean otherwise.

    Args:
        lower (float): the smallest slope.
        upper (float): the largest slope.
        inplace (bool): whether to overwrite the input.

    Example:
        >>> torch.nn.RReLU().eval()(torch.tensor([-1.0, 2.0]))
        tensor([-0.2292,  2.0000])
    """

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.lower = lower
        self.upper = upper

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}{self._inplace_repr()}"


class PReLU(Module):
    """LeakyReLU with a learned slope, one or one per channel.

    Args:
        num_parameters (int): one weight for all, or the number of channels.
        init (float): the initial weight.
        device: the device of the parameters.
        dtype: the dtype of the parameters.

    Example:
        >>> torch.nn.PReLU()(torch.tensor([-1.0, 2.0])).detach()
        tensor([-0.2500,  2.0000])
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device=None, dtype=None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = new_parameter([num_parameters], device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Fill with `init`."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class GELU(Module):
    """x times the normal distribution's cumulative function; approximate="tanh" estimates it.

    Args:
        approximate (str): "none", or "tanh" for the approximation.

    Example:
        >>> torch.nn.GELU()(torch.tensor([-1.0, 2.0]))
        tensor([-0.1587,  1.9545])
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Softplus(Module):
    """log(1 + exp(beta * x)) / beta; x itself where beta * x is above the threshold.

    Args:
        beta (float): the multiplier of x inside the exponential.
        threshold (float): the threshold.

    Example:
        >>> torch.nn.Softplus()(torch.tensor([-1.0, 2.0]))
        tensor([0.3133, 2.1269])
    """

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class _Shrink(Module):
    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Hardshrink(_Shrink):
    """0 in [-lambd, lambd], x elsewhere.

    Args:
        lambd (float): the threshold.

    Example:
        >>> torch.nn.Hardshrink()(torch.tensor([-1.0, 2.0]))
        tensor([-1.,  2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)


class Softshrink(_Shrink):
    """x moved towards 0 by lambd, as far as 0.

    Args:
        lambd (float): the threshold.

    Example:
        >>> torch.nn.Softshrink()(torch.tensor([-1.0, 2.0]))
        tensor([-0.5000,  1.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)


class Tanhshrink(Module):
    """x - tanh(x).

    Args:
        *args (Any): none are needed.
        **kwargs (Any): none are needed.

    Example:
        >>> torch.nn.Tanhshrink()(torch.tensor([-1.0, 2.0]))
        tensor([-0.2384,  1.0360])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


class Tanh(Module):
    """The hyperbolic tangent.

    Args:
        *args (Any): none are needed.
        **kwargs (Any): none are needed.

    Example:
        >>> torch.nn.Tanh()(torch.tensor([-1.0, 2.0]))
        tensor([-0.7616,  0.9640])
    """

    def forward(self, input: Tensor) -> Tensor:
        return input.tanh()


class Sigmoid(Module):
    """1 / (1 + exp(-x)).

    Args:
        *args (Any): none are needed.
        **kwargs (Any): none are needed.

    Example:
        >>> torch.nn.Sigmoid()(torch.tensor([-1.0, 2.0]))
        tensor([0.2689, 0.8808])
    """

    def forward(self, input: Tensor) -> Tensor:
        return input.sigmoid()


class LogSigmoid(Module):
    """log(sigmoid(x)).

    Args:
        *args (Any): none are needed.
        **kwargs (Any): none are needed.

    Example:
        >>> torch.nn.LogSigmoid()(torch.tensor([-1.0, 2.0]))
        tensor([-1.3133, -0.1269])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class Softsign(Module):
    """x / (1 + |x|).

    Args:
        *args (Any): none are needed.
        **kwargs (Any): none are needed.

    Example:
        >>> torch.nn.Softsign()(torch.tensor([-1.0, 2.0]))
        tensor([-0.5000,  0.6667])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class GLU(Module):
    """The first half of `dim` times the sigmoid of the second.

    Args:
        dim (int): the dimension along which to work; negative ones count from the last.

    Example:
        >>> torch.nn.GLU()(torch.tensor([2.0, 0.0]))
        tensor([1.])
    """

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmin(Module):
    """softmax(-x) along `dim`.

    Args:
        dim (int | None): the dimension along which to work; negative ones count from the last.

    Example:
        >>> torch.nn.Softmin(dim=0)(torch.tensor([-1.0, 2.0]))
        tensor([0.9526, 0.0474])
    """

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim, _stacklevel=5)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(Module):
    """exp(x) / sum(exp(x)) along `dim`.

    Args:
        dim (int | None): the dimension along which to work; negative ones count from the last.

    Example:
        >>> torch.nn.Softmax(dim=0)(torch.tensor([-1.0, 2.0]))
        tensor([0.0474, 0.9526])
    """

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim, _stacklevel=5)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class LogSoftmax(Module):
    """log(softmax(x)) along `dim`.

    Args:
        dim (int | None): the dimension along which to work; negative ones count from the last.

    Example:
        >>> torch.nn.LogSoftmax(dim=0)(torch.tensor([-1.0, 2.0]))
        tensor([-3.0486, -0.0486])
    """

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim, _stacklevel=5)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax2d(Module):
    """softmax over the channels of (N, C, H, W) or (C, H, W).

    Args:
        *args (Any): none are needed.
        **kwargs (Any): none are needed.

    Example:
        >>> torch.nn.Softmax2d()(torch.ones(1, 2, 1, 1)).flatten()
        tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3)


# PyTorch's module of this name also has these classes; they are imported lazily.
__getattr__, __dir__ = lazy_names(globals(), {
    "rushlight.nn.modules.attention": ("MultiheadAttention",),
})  # fmt: skip
