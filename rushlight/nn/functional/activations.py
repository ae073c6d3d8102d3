"""Activation functions. `inplace=True` overwrites the input."""

from __future__ import annotations

import warnings

from rushlight.core.dtype import dtype as element_type
from rushlight.core.tensor import Tensor
from rushlight.nn.functional.common import aten
from rushlight.ops.out import finish


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(0, x).

    Args:
        input (Tensor): the input.
        inplace (bool): whether to overwrite the input.

    Example:
        >>> F.relu(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """
    return aten.relu_(input) if inplace else aten.relu(input)


def relu_(input: Tensor) -> Tensor:
    """relu in place.

    Args:
        input (Tensor): the input.

    Example:
        >>> F.relu_(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """
    return aten.relu_(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(0, x), 6).

    Args:
        input (Tensor): the input.
        inplace (bool): whether to overwrite the input.

    Example:
        >>> F.relu6(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """
    return aten.relu6_(input) if inplace else aten.relu6(input)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where positive, negative_slope * x elsewhere.

    Args:
        input (Tensor): the input.
        negative_slope (float): the slope below 0.
        inplace (bool): whether to overwrite the input.

    Example:
        >>> F.leaky_relu(torch.tensor([-1.0, 2.0]))
        tensor([-0.0100,  2.0000])
    """
    return aten.leaky_relu_(input, negative_slope) if inplace else aten.leaky_relu(input, negative_slope)


def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """leaky_relu in place.

    Args:
        input (Tensor): the input.
        negative_slope (float): the slope below 0.

    Example:
        >>> F.leaky_relu_(torch.tensor([-1.0, 2.0]))
        tensor([-0.0100,  2.0000])
    """
    return aten.leaky_relu_(input, negative_slope)


def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """leaky_relu with a slope drawn uniformly from [lower, upper] per element, or their mean outside of training.

    Args:
        input (Tensor): the input.
        lower (float): the smallest slope.
        upper (float): the largest slope.
        training (bool): whether slopes are drawn.
        inplace (bool): whether to overwrite the input.

    Example:
        >>> F.rrelu(torch.tensor([-1.0, 2.0]))
        tensor([-0.2292,  2.0000])
    """
    return aten.rrelu_(input, lower, upper, training) if inplace else aten.rrelu(input, lower, upper, training)


def rrelu_(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False) -> Tensor:
    """rrelu in place.

    Args:
        input (Tensor): the input.
        lower (float): the smallest slope.
        upper (float): the largest slope.
        training (bool): whether slopes are drawn.

    Example:
        >>> F.rrelu_(torch.tensor([-1.0, 2.0]))
        tensor([-0.2292,  2.0000])
    """
    return aten.rrelu_(input, lower, upper, training)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """leaky_relu whose slope, one or one per channel (dimension 1), is a tensor.

    Args:
        input (Tensor): the input.
        weight (Tensor): the slopes for negative inputs.

    Example:
        >>> F.prelu(torch.tensor([-1.0, 2.0]), torch.tensor([0.5]))
        tensor([-0.5000,  2.0000])
    """
    return aten.prelu(input, weight)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where positive, alpha * (exp(x) - 1) elsewhere (Clevert et al. 2015).

    Args:
        input (Tensor): the input.
        alpha (float): minus the limit for large negative inputs.
        inplace (bool): whether to overwrite the input.

    Example:
        >>> F.elu(torch.tensor([-1.0, 2.0]))
        tensor([-0.6321,  2.0000])
    """
    return aten.elu_(input, alpha) if inplace else aten.elu(input, alpha)


def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """elu in place.

    Args:
        input (Tensor): the input.
        alpha (float): minus the limit for large negative inputs.

    Example:
        >>> F.elu_(torch.tensor([-1.0, 2.0]))
        tensor([-0.6321,  2.0000])
    """
    return aten.elu_(input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """elu with the self-normalising constants (Klambauer et al. 2017).

    Args:
        input (Tensor): the input.
        inplace (bool): whether to overwrite the input.

    Example:
        >>> F.selu(torch.tensor([-1.0, 2.0]))
        tensor([-1.1113,  2.1014])
    """
    return aten.selu_(input) if inplace else aten.selu(input)


def selu_(input: Tensor) -> Tensor:
    """selu in place.

    Args:
        input (Tensor): the input.

    Example:
        >>> F.selu_(torch.tensor([-1.0, 2.0]))
        tensor([-1.1113,  2.1014])
    """
    return aten.selu_(input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1)) (Barron 2017).

    Args:
        input (Tensor): the input.
        alpha (float): minus the limit for large negative inputs.
        inplace (bool): whether to overwrite the input.

    Example:
        >>> F.celu(torch.tensor([-1.0, 2.0]))
        tensor([-0.6321,  2.0000])
    """
    return aten.celu_(input, alpha) if inplace else aten.celu(input, alpha)


def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """celu in place.

    Args:
        input (Tensor): the input.
        alpha (float): minus the limit for large negative inputs.

    Example:
        >>> F.celu_(torch.tensor([-1.0, 2.0]))
        tensor([-0.6321,  2.0000])
    """
    return aten.celu_(input, alpha)


def gelu(input: Tensor, approximate: str = "none", *, out: Tensor | None = None) -> Tensor:
    """x times the normal distribution's cumulative function; approximate="tanh" estimates that (arXiv:1606.08415).

    Args:
        input (Tensor): the input.
        approximate (str): "none", or "tanh" for the approximation.
        out (Tensor | None): where the result is written, if given.

    Example:
        >>> F.gelu(torch.tensor([-1.0, 2.0]))
        tensor([-0.1587,  1.9545])
    """
    result = aten.gelu(input, approximate=approximate)
    return finish("gelu", out, result, input)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x * sigmoid(x).

    Args:
        input (Tensor): the input.
        inplace (bool): whether to overwrite the input.

    Example:
        >>> F.silu(torch.tensor([-1.0, 2.0]))
        tensor([-0.2689,  1.7616])
    """
    return aten.silu_(input) if inplace else aten.silu(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * tanh(softplus(x)) (Misra 2019).

    Args:
        input (Tensor): the input.
        inplace (bool): whether to overwrite the input.

    Example:
        >>> F.mish(torch.tensor([-1.0, 2.0]))
        tensor([-0.3034,  1.9440])
    """
    return aten.mish_(input) if inplace else aten.mish(input)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """x bounded to [min_val, max_val]; ValueError when min_val is the larger.

    Args:
        input (Tensor): the input.
        min_val (float): the lower bound.
        max_val (float): the upper bound.
        inplace (bool): whether to overwrite the input.

    Example:
        >>> F.hardtanh(torch.tensor([-1.0, 2.0]))
        tensor([-1.,  1.])
    """
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return aten.hardtanh_(input, min_val, max_val) if inplace else aten.hardtanh(input, min_val, max_val)


def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """hardtanh in place.

    Args:
        input (Tensor): the input.
        min_val (float): the lower bound.
        max_val (float): the upper bound.

    Example:
        >>> F.hardtanh_(torch.tensor([-1.0, 2.0]))
        tensor([-1.,  1.])
    """
    return aten.hardtanh_(input, min_val, max_val)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * relu6(x + 3) / 6 (Howard et al. 2019).

    Args:
        input (Tensor): the input.
        inplace (bool): whether to overwrite the input.

    Example:
        >>> F.hardswish(torch.tensor([-1.0, 2.0]))
        tensor([-0.3333,  1.6667])
    """
    return aten.hardswish_(input) if inplace else aten.hardswish(input)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """relu6(x + 3) / 6.

    Args:
        input (Tensor): the input.
        inplace (bool): whether to overwrite the input.

    Example:
        >>> F.hardsigmoid(torch.tensor([-1.0, 2.0]))
        tensor([0.3333, 0.8333])
    """
    return aten.hardsigmoid_(input) if inplace else aten.hardsigmoid(input)


def softplus(input: Tensor, beta: float = 1, threshold: float = 20, *, out: Tensor | None = None) -> Tensor:
    """log(1 + exp(beta * x)) / beta; x itself where beta * x is above the threshold.

    Args:
        input (Tensor): the input.
        beta (float): the multiplier of x inside the exponential.
        threshold (float): the threshold.
        out (Tensor | None): where the result is written, if given.

    Example:
        >>> F.softplus(torch.tensor([-1.0, 2.0]))
        tensor([0.3133, 2.1269])
    """
    result = aten.softplus(input, beta, threshold)
    return finish("softplus", out, result, input)


def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|).

    Args:
        input (Tensor): the input.

    Example:
        >>> F.softsign(torch.tensor([-1.0, 2.0]))
        tensor([-0.5000,  0.6667])
    """
    return input / (input.abs() + 1)


def tanh(input: Tensor) -> Tensor:
    """Return the hyperbolic tangent.

    Args:
        input (Tensor): the input.

    Example:
        >>> F.tanh(torch.tensor([-1.0, 2.0]))
        tensor([-0.7616,  0.9640])
    """
    return input.tanh()


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x)).

    Args:
        input (Tensor): the input.

    Example:
        >>> F.sigmoid(torch.tensor([-1.0, 2.0]))
        tensor([0.2689, 0.8808])
    """
    return input.sigmoid()


def logsigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """log(sigmoid(x)), without overflow.

    Args:
        input (Tensor): the input.
        out (Tensor | None): where the result is written, if given.

    Example:
        >>> F.logsigmoid(torch.tensor([-1.0, 2.0]))
        tensor([-1.3133, -0.1269])
    """
    result = aten.log_sigmoid(input)
    return finish("logsigmoid", out, result, input)


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x).

    Args:
        input (Tensor): the input.

    Example:
        >>> F.tanhshrink(torch.tensor([-1.0, 2.0]))
        tensor([-0.2384,  1.0360])
    """
    return input - input.tanh()


def hardshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """0 in [-lambd, lambd], x elsewhere.

    Args:
        input (Tensor): the input.
        lambd (float): the threshold.
        out (Tensor | None): where the result is written, if given.

    Example:
        >>> F.hardshrink(torch.tensor([-1.0, 2.0]))
        tensor([-1.,  2.])
    """
    result = aten.hardshrink(input, lambd)
    return finish("hardshrink", out, result, input)


def softshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """x moved towards 0 by lambd, as far as 0.

    Args:
        input (Tensor): the input.
        lambd (float): the threshold.
        out (Tensor | None): where the result is written, if given.

    Example:
        >>> F.softshrink(torch.tensor([-1.0, 2.0]))
        tensor([-0.5000,  1.5000])
    """
    result = aten.softshrink(input, lambd)
    return finish("softshrink", out, result, input)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x where above the threshold, `value` elsewhere.

    Args:
        input (Tensor): the input.
        threshold (float): the threshold.
        value (float): the replacement of elements up to the threshold.
        inplace (bool): whether to overwrite the input.

    Example:
        >>> F.threshold(torch.tensor([-1.0, 2.0]), 0.5, 9.0)
        tensor([9., 2.])
    """
    return aten.threshold_(input, threshold, value) if inplace else aten.threshold(input, threshold, value)


def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """threshold in place.

    Args:
        input (Tensor): the input.
        threshold (float): the threshold.
        value (float): the replacement of elements up to the threshold.

    Example:
        >>> F.threshold_(torch.tensor([-1.0, 2.0]), 0.5, 9.0)
        tensor([9., 2.])
    """
    return aten.threshold_(input, threshold, value)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Return the first half of `dim` times the sigmoid of the second (Dauphin et al. 2016).

    Args:
        input (Tensor): the input.
        dim (int): the dimension along which to work; negative ones count from the last.

    Example:
        >>> F.glu(torch.tensor([2.0, 0.0]))
        tensor([1.])
    """
    return aten.glu(input, dim)


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: element_type | None = None) -> Tensor:
    """exp(x) / sum(exp(x)) along `dim`.

    Args:
        input (Tensor): the input.
        dim (int | None): the dimension along which to work; negative ones count from the last.
        dtype (element_type | None): the dtype of the result, to which the input is cast first.

    Example:
        >>> F.softmax(torch.tensor([-1.0, 2.0]), dim=0)
        tensor([0.0474, 0.9526])
    """
    dim = _implicit_dim("softmax", input, _stacklevel) if dim is None else dim
    return aten.softmax.int(input, dim, dtype)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: element_type | None = None
) -> Tensor:
    """log(softmax(x)) along `dim`.

    Args:
        input (Tensor): the input.
        dim (int | None): the dimension along which to work; negative ones count from the last.
        dtype (element_type | None): the dtype of the result, to which the input is cast first.

    Example:
        >>> F.log_softmax(torch.tensor([-1.0, 2.0]), dim=0)
        tensor([-3.0486, -0.0486])
    """
    dim = _implicit_dim("log_softmax", input, _stacklevel) if dim is None else dim
    return aten.log_softmax.int(input, dim, dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: element_type | None = None) -> Tensor:
    """softmax(-x) along `dim`.

    Args:
        input (Tensor): the input.
        dim (int | None): the dimension along which to work; negative ones count from the last.
        dtype (element_type | None): the dtype of the result, to which the input is cast first.

    Example:
        >>> F.softmin(torch.tensor([-1.0, 2.0]), dim=0)
        tensor([0.9526, 0.0474])
    """
    dim = _implicit_dim("softmin", input, _stacklevel) if dim is None else dim
    return aten.softmax.int(-input, dim, dtype)


def _implicit_dim(name: str, input: Tensor, stacklevel: int) -> int:
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if input.dim() in (0, 1, 3) else 1


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """Return a sample of the Gumbel-softmax distribution (Jang et al. 2016); `hard` makes it one-hot, with the soft gradient.

    `eps` has no effect; it is there because callers of older torch versions pass it.

    Args:
        logits (Tensor): unnormalized logarithms of probabilities.
        tau (float): the temperature: a smaller one is closer to one-hot.
        hard (bool): whether results are one-hot; gradients stay soft.
        eps (float): has no effect.
        dim (int): the dimension along which to work; negative ones count from the last.

    Example:
        >>> F.gumbel_softmax(torch.tensor([-1.0, 2.0])).sum().round()
        tensor(1.)
    """
    gumbels = -logits.detach().new_empty(logits.shape).exponential_().log()
    soft = ((logits + gumbels) / tau).softmax(dim)
    if not hard:
        return soft
    chosen = soft.detach().max(dim, keepdim=True)[1]
    one_hot = soft.detach().new_zeros(soft.shape).scatter(dim, chosen, 1.0)
    return one_hot - soft.detach() + soft
