"""Docstrings of operators that make tensors, by name."""

DOCSTRINGS: dict[str, str] = {
    "zeros": """A tensor of zeros.

Args:
    size (Sequence[int]): the sizes of the result.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    layout (layout | None): the layout of the result: `torch.strided` by default.
    device (device | None): where the result lies: the default device if not given.
    pin_memory (bool | None): must be false: there is no memory to lock for another device.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.zeros(2, 2)
    tensor([[0., 0.],
            [0., 0.]])""",
    "ones": """A tensor of ones.

Args:
    size (Sequence[int]): the sizes of the result.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    layout (layout | None): the layout of the result: `torch.strided` by default.
    device (device | None): where the result lies: the default device if not given.
    pin_memory (bool | None): must be false: there is no memory to lock for another device.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.ones(2)
    tensor([1., 1.])""",
    "empty": """A tensor whose memory is not set.

Args:
    size (Sequence[int]): the sizes of the result.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    layout (layout | None): the layout of the result: `torch.strided` by default.
    device (device | None): where the result lies: the default device if not given.
    pin_memory (bool | None): must be false: there is no memory to lock for another device.
    memory_format (memory_format | None): the order of elements in memory.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.empty(2, 3).shape
    torch.Size([2, 3])""",
    "full": """A tensor of one value; its dtype follows from that.

Args:
    size (Sequence[int]): the sizes of the result.
    fill_value (Number): the value of every element.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    layout (layout | None): the layout of the result: `torch.strided` by default.
    device (device | None): where the result lies: the default device if not given.
    pin_memory (bool | None): must be false: there is no memory to lock for another device.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.full((2,), 7)
    tensor([7, 7])""",
    "zeros_like": """Zeros of the sizes and dtype of another tensor.

Args:
    input (Tensor): the operand.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    layout (layout | None): the layout of the result: `torch.strided` by default.
    device (device | None): where the result lies: the default device if not given.
    pin_memory (bool | None): must be false: there is no memory to lock for another device.
    memory_format (memory_format | None): the order of elements in memory.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.zeros_like(torch.tensor([1, 2]))
    tensor([0, 0])""",
    "ones_like": """Ones of the sizes and dtype of another tensor.

Args:
    input (Tensor): the operand.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    layout (layout | None): the layout of the result: `torch.strided` by default.
    device (device | None): where the result lies: the default device if not given.
    pin_memory (bool | None): must be false: there is no memory to lock for another device.
    memory_format (memory_format | None): the order of elements in memory.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.ones_like(torch.tensor([1, 2]))
    tensor([1, 1])""",
    "full_like": """One value in the sizes and dtype of another tensor.

Args:
    input (Tensor): the operand.
    fill_value (Number): the value of every element.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    layout (layout | None): the layout of the result: `torch.strided` by default.
    device (device | None): where the result lies: the default device if not given.
    pin_memory (bool | None): must be false: there is no memory to lock for another device.
    memory_format (memory_format | None): the order of elements in memory.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.full_like(torch.tensor([1, 2]), 7)
    tensor([7, 7])""",
    "empty_like": """Memory that is not set, of the sizes and dtype of another tensor.

Args:
    input (Tensor): the operand.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    layout (layout | None): the layout of the result: `torch.strided` by default.
    device (device | None): where the result lies: the default device if not given.
    pin_memory (bool | None): must be false: there is no memory to lock for another device.
    memory_format (memory_format | None): the order of elements in memory.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.empty_like(torch.ones(2, 3)).shape
    torch.Size([2, 3])""",
    "empty_strided": """Memory that is not set, with sizes and strides.

Args:
    size (Sequence[int]): the sizes of the result.
    stride (Sequence[int]): the distance between places, or the strides of the result in elements.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    layout (layout | None): the layout of the result: `torch.strided` by default.
    device (device | None): where the result lies: the default device if not given.
    pin_memory (bool | None): must be false: there is no memory to lock for another device.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)""",
    "empty_permuted": """Memory that is not set, with its dimensions in a given order.

Args:
    size (Sequence[int]): the sizes of the result.
    physical_layout (Sequence[int]): the order of the dimensions in memory, outermost first.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    layout (layout | None): the layout of the result: `torch.strided` by default.
    device (device | None): where the result lies: the default device if not given.
    pin_memory (bool | None): must be false: there is no memory to lock for another device.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.empty_permuted((2, 3), (1, 0)).stride()
    (1, 2)""",
    "arange": """Numbers from `start` up to, without, `end`, at equal distances.

Args:
    start (Number): the first number or position.
    end (Number): the position behind the last, or the last number.
    step (Number): the distance between neighbours.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    layout (layout | None): the layout of the result: `torch.strided` by default.
    device (device | None): where the result lies: the default device if not given.
    pin_memory (bool | None): must be false: there is no memory to lock for another device.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.arange(1, 7, 2)
    tensor([1, 3, 5])""",
    "linspace": """`steps` numbers from `start` to `end`, both included.

Args:
    start (Number): the first number or position.
    end (Number): the position behind the last, or the last number.
    steps (int): the number of points.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    layout (layout | None): the layout of the result: `torch.strided` by default.
    device (device | None): where the result lies: the default device if not given.
    pin_memory (bool | None): must be false: there is no memory to lock for another device.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.linspace(0, 1, 3)
    tensor([0.0000, 0.5000, 1.0000])""",
    "logspace": """`base` to the powers that `linspace` gives.

Args:
    start (Number): the first number or position.
    end (Number): the position behind the last, or the last number.
    steps (int): the number of points.
    base (float): the base.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    layout (layout | None): the layout of the result: `torch.strided` by default.
    device (device | None): where the result lies: the default device if not given.
    pin_memory (bool | None): must be false: there is no memory to lock for another device.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])""",
    "eye": """A matrix with ones on the diagonal.

Args:
    n (int): the order, or the number of points.
    m (int): the number of columns.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    layout (layout | None): the layout of the result: `torch.strided` by default.
    device (device | None): where the result lies: the default device if not given.
    pin_memory (bool | None): must be false: there is no memory to lock for another device.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.eye(2)
    tensor([[1., 0.],
            [0., 1.]])""",
    "scalar_tensor": """A tensor without dimensions.

Args:
    s (Number): the length of each transformed dimension: the input is cut or filled with zeros.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    layout (layout | None): the layout of the result: `torch.strided` by default.
    device (device | None): where the result lies: the default device if not given.
    pin_memory (bool | None): must be false: there is no memory to lock for another device.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.scalar_tensor(3.5)
    tensor(3.5000)""",
    "fill": """A copy of the input's sizes, filled with a value.

Args:
    input (Tensor): the operand.
    value (Number): a number, or the value at masked or chosen places.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.fill(torch.zeros(2), 3)
    tensor([3., 3.])""",
    "bartlett_window": """Bartlett's triangular window.

Args:
    window_length (int): the number of points.
    periodic (bool): whether the window is one period of a periodic function, as spectra want it; symmetric
        otherwise.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    layout (layout | None): the layout of the result: `torch.strided` by default.
    device (device | None): where the result lies: the default device if not given.
    pin_memory (bool | None): must be false: there is no memory to lock for another device.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.bartlett_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])""",
    "blackman_window": """Blackman's window.

Args:
    window_length (int): the number of points.
    periodic (bool): whether the window is one period of a periodic function, as spectra want it; symmetric
        otherwise.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    layout (layout | None): the layout of the result: `torch.strided` by default.
    device (device | None): where the result lies: the default device if not given.
    pin_memory (bool | None): must be false: there is no memory to lock for another device.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.blackman_window(4)
    tensor([-2.9802e-08,  3.4000e-01,  1.0000e+00,  3.4000e-01])""",
    "hamming_window": """Hamming's window: alpha - beta * cos.

Args:
    window_length (int): the number of points.
    periodic (bool): whether the window is one period of a periodic function, as spectra want it; symmetric
        otherwise.
    alpha (float): a factor: for `other`, or for the product.
    beta (float): a factor for the input, or the curvature.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    layout (layout | None): the layout of the result: `torch.strided` by default.
    device (device | None): where the result lies: the default device if not given.
    pin_memory (bool | None): must be false: there is no memory to lock for another device.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.hamming_window(4)
    tensor([0.0800, 0.5400, 1.0000, 0.5400])""",
    "hann_window": """Von Hann's window: the square of a sine.

Args:
    window_length (int): the number of points.
    periodic (bool): whether the window is one period of a periodic function, as spectra want it; symmetric
        otherwise.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    layout (layout | None): the layout of the result: `torch.strided` by default.
    device (device | None): where the result lies: the default device if not given.
    pin_memory (bool | None): must be false: there is no memory to lock for another device.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])""",
    "kaiser_window": """Kaiser's window, of shape `beta`.

Args:
    window_length (int): the number of points.
    periodic (bool): whether the window is one period of a periodic function, as spectra want it; symmetric
        otherwise.
    beta (float): a factor for the input, or the curvature.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    layout (layout | None): the layout of the result: `torch.strided` by default.
    device (device | None): where the result lies: the default device if not given.
    pin_memory (bool | None): must be false: there is no memory to lock for another device.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.kaiser_window(4)
    tensor([5.2773e-05, 2.1567e-01, 1.0000e+00, 2.1567e-01])""",
    "rand": """Numbers drawn uniformly from [0, 1).

Args:
    size (Sequence[int]): the sizes of the result.
    generator (Generator | None): where random numbers come from: the default generator if not given.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    layout (layout | None): the layout of the result: `torch.strided` by default.
    device (device | None): where the result lies: the default device if not given.
    pin_memory (bool | None): must be false: there is no memory to lock for another device.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.rand(2, 3).shape
    torch.Size([2, 3])""",
    "randn": """Numbers drawn from the normal distribution of mean 0 and variance 1.

Args:
    size (Sequence[int]): the sizes of the result.
    generator (Generator | None): where random numbers come from: the default generator if not given.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    layout (layout | None): the layout of the result: `torch.strided` by default.
    device (device | None): where the result lies: the default device if not given.
    pin_memory (bool | None): must be false: there is no memory to lock for another device.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.randn(2, 3).shape
    torch.Size([2, 3])""",
    "randint": """Integers drawn uniformly from [low, high).

Args:
    low (int): the lowest number.
    high (int): the number above the highest.
    size (Sequence[int]): the sizes of the result.
    generator (Generator | None): where random numbers come from: the default generator if not given.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    layout (layout | None): the layout of the result: `torch.strided` by default.
    device (device | None): where the result lies: the default device if not given.
    pin_memory (bool | None): must be false: there is no memory to lock for another device.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.randint(3, 4, (2,))
    tensor([3, 3])""",
    "randperm": """The integers below n in a random order.

Args:
    n (int): the order, or the number of points.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    layout (layout | None): the layout of the result: `torch.strided` by default.
    device (device | None): where the result lies: the default device if not given.
    pin_memory (bool | None): must be false: there is no memory to lock for another device.
    generator (Generator | None): where random numbers come from: the default generator if not given.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.randperm(3).sort().values
    tensor([0, 1, 2])""",
    "rand_like": """`rand` in the sizes and dtype of another tensor.

Args:
    input (Tensor): the operand.
    generator (Generator | None): where random numbers come from: the default generator if not given.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    layout (layout | None): the layout of the result: `torch.strided` by default.
    device (device | None): where the result lies: the default device if not given.
    pin_memory (bool | None): must be false: there is no memory to lock for another device.
    memory_format (memory_format | None): the order of elements in memory.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.rand_like(torch.ones(2)).shape
    torch.Size([2])""",
    "randn_like": """`randn` in the sizes and dtype of another tensor.

Args:
    input (Tensor): the operand.
    generator (Generator | None): where random numbers come from: the default generator if not given.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    layout (layout | None): the layout of the result: `torch.strided` by default.
    device (device | None): where the result lies: the default device if not given.
    pin_memory (bool | None): must be false: there is no memory to lock for another device.
    memory_format (memory_format | None): the order of elements in memory.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.randn_like(torch.ones(2)).shape
    torch.Size([2])""",
    "randint_like": """`randint` in the sizes and dtype of another tensor.

Args:
    input (Tensor): the operand.
    low (int): the lowest number.
    high (int): the number above the highest.
    generator (Generator | None): where random numbers come from: the default generator if not given.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    layout (layout | None): the layout of the result: `torch.strided` by default.
    device (device | None): where the result lies: the default device if not given.
    pin_memory (bool | None): must be false: there is no memory to lock for another device.
    memory_format (memory_format | None): the order of elements in memory.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.randint_like(torch.ones(2), 3, 4)
    tensor([3., 3.])""",
    "normal": """Numbers drawn from normal distributions of given means and deviations.

Args:
    mean (float): the mean, or the means.
    std (float): the standard deviation, or the deviations.
    size (Sequence[int]): the sizes of the result.
    generator (Generator | None): where random numbers come from: the default generator if not given.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    layout (layout | None): the layout of the result: `torch.strided` by default.
    device (device | None): where the result lies: the default device if not given.
    pin_memory (bool | None): must be false: there is no memory to lock for another device.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.normal(torch.zeros(2), torch.zeros(2))
    tensor([0., 0.])""",
    "bernoulli": """1 with the probability that each element is, else 0. RuntimeError for one outside of
[0, 1].

Args:
    input (Tensor): the operand.
    p (float): the probability, or the exponent of the norm.
    generator (Generator | None): where random numbers come from: the default generator if not given.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.bernoulli(torch.tensor([0.0, 1.0]))
    tensor([0., 1.])""",
    "binomial": """How many of `count` trials succeed.

Args:
    count (Tensor): how many trials.
    prob (Tensor): the probability of success.
    generator (Generator | None): where random numbers come from: the default generator if not given.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.binomial(torch.tensor([4.0]), torch.tensor([1.0]))
    tensor([4.])""",
    "poisson": """Numbers drawn from Poisson's distribution with each element as rate.

Args:
    input (Tensor): the operand.
    generator (Generator | None): where random numbers come from: the default generator if not given.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.poisson(torch.zeros(2))
    tensor([0., 0.])""",
    "multinomial": """Indices drawn with probabilities that are proportional to each row.

Args:
    input (Tensor): the operand.
    num_samples (int): how many to draw.
    replacement (bool): whether one may be drawn again.
    generator (Generator | None): where random numbers come from: the default generator if not given.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.multinomial(torch.tensor([0.0, 1.0]), 1)
    tensor([1])""",
}
