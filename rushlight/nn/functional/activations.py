"""Activation functions. `inplace=True` overwrites the input."""

from __future__ import annotations

import warnings

from rushlight.core.dtype import dtype as element_type
from rushlight.core.tensor import Tensor
from rushlight.nn.functional.common import aten


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(0, x)."""
    return aten.relu_(input) if inplace else aten.relu(input)


def relu_(input: Tensor) -> Tensor:
    """relu in place."""
    return aten.relu_(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(0, x), 6)."""
    return aten.relu6_(input) if inplace else aten.relu6(input)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where positive, negative_slope * x elsewhere."""
    return aten.leaky_relu_(input, negative_slope) if inplace else aten.leaky_relu(input, negative_slope)


def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """leaky_relu in place."""
    return aten.leaky_relu_(input, negative_slope)


def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """leaky_relu with a slope drawn uniformly from [lower, upper] per element, or their mean outside of training."""
    return aten.rrelu_(input, lower, upper, training) if inplace else aten.rrelu(input, lower, upper, training)


def rrelu_(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False) -> Tensor:
    """rrelu in place."""
    return aten.rrelu_(input, lower, upper, training)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """leaky_relu whose slope, one or one per channel (dimension 1), is a tensor."""
    return aten.prelu(input, weight)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where positive, alpha * (exp(x) - 1) elsewhere (Clevert et al. 2015)."""
    return aten.elu_(input, alpha) if inplace else aten.elu(input, alpha)


def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """elu in place."""
    return aten.elu_(input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """elu with the self-normalising constants (Klambauer et al. 2017)."""
    return aten.selu_(input) if inplace else aten.selu(input)


def selu_(input: Tensor) -> Tensor:
    """selu in place."""
    return aten.selu_(input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1)) (Barron 2017)."""
    return aten.celu_(input, alpha) if inplace else aten.celu(input, alpha)


def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """celu in place."""
    return aten.celu_(input, alpha)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """x times the normal distribution's cumulative function; approximate="tanh" estimates that (arXiv:1606.08415)."""
    return aten.gelu(input, approximate=approximate)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x * sigmoid(x)."""
    return aten.silu_(input) if inplace else aten.silu(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * tanh(softplus(x)) (Misra 2019)."""
    return aten.mish_(input) if inplace else aten.mish(input)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """x bounded to [min_val, max_val]; ValueError when min_val is the larger."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return aten.hardtanh_(input, min_val, max_val) if inplace else aten.hardtanh(input, min_val, max_val)


def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """hardtanh in place."""
    return aten.hardtanh_(input, min_val, max_val)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * relu6(x + 3) / 6 (Howard et al. 2019)."""
    return aten.hardswish_(input) if inplace else aten.hardswish(input)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """relu6(x + 3) / 6."""
    return aten.hardsigmoid_(input) if inplace else aten.hardsigmoid(input)


def softplus(input: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    """log(1 + exp(beta * x)) / beta; x itself where beta * x is above the threshold."""
    return aten.softplus(input, beta, threshold)


def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)."""
    return input / (input.abs() + 1)


def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent."""
    return input.tanh()


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
    return input.sigmoid()


def logsigmoid(input: Tensor) -> Tensor:
    """log(sigmoid(x)), without overflow."""
    return aten.log_sigmoid(input)


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""
    return input - input.tanh()


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """0 in [-lambd, lambd], x elsewhere."""
    return aten.hardshrink(input, lambd)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x moved towards 0 by lambd, as far as 0."""
    return aten.softshrink(input, lambd)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x where above the threshold, `value` elsewhere."""
    return aten.threshold_(input, threshold, value) if inplace else aten.threshold(input, threshold, value)


def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """threshold in place."""
    return aten.threshold_(input, threshold, value)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half of `dim` times the sigmoid of the second (Dauphin et al. 2016)."""
    return aten.glu(input, dim)


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: element_type | None = None) -> Tensor:
    """exp(x) / sum(exp(x)) along `dim`."""
    dim = _implicit_dim("softmax", input, _stacklevel) if dim is None else dim
    return aten.softmax.int(input, dim, dtype)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: element_type | None = None
) -> Tensor:
    """log(softmax(x)) along `dim`."""
    dim = _implicit_dim("log_softmax", input, _stacklevel) if dim is None else dim
    return aten.log_softmax.int(input, dim, dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: element_type | None = None) -> Tensor:
    """softmax(-x) along `dim`."""
    dim = _implicit_dim("softmin", input, _stacklevel) if dim is None else dim
    return aten.softmax.int(-input, dim, dtype)


def _implicit_dim(name: str, input: Tensor, stacklevel: int) -> int:
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if input.dim() in (0, 1, 3) else 1


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A sample of the Gumbel-softmax distribution (Jang et al. 2016); `hard` makes it one-hot, with the soft gradient.

    `eps` has no effect; it is there because callers of older torch versions pass it.
    """
    gumbels = -logits.detach().new_empty(logits.shape).exponential_().log()
    soft = ((logits + gumbels) / tau).softmax(dim)
    if not hard:
        return soft
    chosen = soft.detach().max(dim, keepdim=True)[1]
    one_hot = soft.detach().new_zeros(soft.shape).scatter(dim, chosen, 1.0)
    return one_hot - soft.detach() + soft
