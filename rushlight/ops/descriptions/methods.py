"""Docstrings of operators that are methods only, by name."""

DOCSTRINGS: dict[str, str] = {
    "expand": """A view with other sizes: dimensions of size 1, and new ones in front, repeat without
copies; -1 keeps a size.

Args:
    input (Tensor): the operand.
    size (Sequence[int]): the sizes of the result.
    implicit (bool): see above.

Example:
    >>> torch.tensor([[1], [2]]).expand(2, 3)
    tensor([[1, 1, 1],
            [2, 2, 2]])""",
    "expand_as": """`expand` to the sizes of another tensor.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.

Example:
    >>> torch.tensor([1]).expand_as(torch.ones(2))
    tensor([1, 1])""",
    "repeat": """Copies of the tensor one behind another along each dimension.

Args:
    input (Tensor): the operand.
    repeats (Sequence[int]): how often, for all elements or for each.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.tensor([1, 2]).repeat(2)
    tensor([1, 2, 1, 2])""",
    "view": """The same elements with other sizes, one of which may be -1, without copies.
RuntimeError where the strides do not allow it.

Args:
    input (Tensor): the operand.
    size (Sequence[int]): the sizes of the result.

Example:
    >>> torch.arange(4).view(2, 2)
    tensor([[0, 1],
            [2, 3]])""",
    "view_as": """`view` with the sizes of another tensor.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.

Example:
    >>> torch.arange(4).view_as(torch.ones(2, 2))
    tensor([[0, 1],
            [2, 3]])""",
    "reshape_as": """`reshape` to the sizes of another tensor.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.

Example:
    >>> torch.arange(4).reshape_as(torch.ones(2, 2))
    tensor([[0, 1],
            [2, 3]])""",
    "unfold": """A view of all windows of a size along a dimension, as a last dimension.

Args:
    input (Tensor): the operand.
    dimension (int): see above.
    size (int): the sizes of the result.
    step (int): the distance between neighbours.

Example:
    >>> torch.arange(4).unfold(0, 2, 1)
    tensor([[0, 1],
            [1, 2],
            [2, 3]])""",
    "contiguous": """The tensor in row-major order, or another memory format: a copy where it does not
lie so.

Args:
    input (Tensor): the operand.
    memory_format (memory_format): the order of elements in memory.

Example:
    >>> torch.ones(2, 3).t().contiguous().stride()
    (2, 1)""",
    "copy_": """Take over the elements of another tensor, which is broadcast and converted.

Args:
    input (Tensor): the operand.
    src (Tensor): the values that are written.
    non_blocking (bool): see above.

Example:
    >>> torch.zeros(2).copy_(torch.tensor([1, 2]))
    tensor([1., 2.])""",
    "fill_diagonal_": """Write a value on the main diagonal.

Args:
    input (Tensor): the operand.
    fill_value (Number): the value of every element.
    wrap (bool): see above.

Example:
    >>> torch.zeros(2, 2).fill_diagonal_(1.0)
    tensor([[1., 0.],
            [0., 1.]])""",
    "uniform_": """Numbers drawn uniformly from [from, to).

Args:
    input (Tensor): the operand.
    from (float): see above.
    to (float): see above.
    generator (Generator | None): where random numbers come from: the default generator if not given.

Example:
    >>> torch.empty(2).uniform_(1.0, 1.0)
    tensor([1., 1.])""",
    "normal_": """Numbers drawn from the normal distribution.

Args:
    input (Tensor): the operand.
    mean (float): the mean, or the means.
    std (float): the standard deviation, or the deviations.
    generator (Generator | None): where random numbers come from: the default generator if not given.

Example:
    >>> torch.empty(2).normal_(3.0, 0.0)
    tensor([3., 3.])""",
    "random_": """Integers drawn uniformly, from [from, to) if given.

Args:
    input (Tensor): the operand.
    from (int): see above.
    to (int | None): see above.
    generator (Generator | None): where random numbers come from: the default generator if not given.

Example:
    >>> torch.empty(2).random_(3, 4)
    tensor([3., 3.])""",
    "exponential_": """Numbers drawn from the exponential distribution.

Args:
    input (Tensor): the operand.
    lambd (float): the threshold.
    generator (Generator | None): where random numbers come from: the default generator if not given.

Example:
    >>> (torch.empty(2).exponential_() >= 0).all()
    tensor(True)""",
    "geometric_": """Numbers drawn from the geometric distribution: how many trials until the first
success.

Args:
    input (Tensor): the operand.
    p (float): the probability, or the exponent of the norm.
    generator (Generator | None): where random numbers come from: the default generator if not given.

Example:
    >>> (torch.empty(2).geometric_(0.5) >= 1).all()
    tensor(True)""",
    "cauchy_": """Numbers drawn from Cauchy's distribution.

Args:
    input (Tensor): the operand.
    median (float): see above.
    sigma (float): see above.
    generator (Generator | None): where random numbers come from: the default generator if not given.

Example:
    >>> torch.empty(2).cauchy_().shape
    torch.Size([2])""",
    "log_normal_": """Numbers whose logarithms are drawn from the normal distribution.

Args:
    input (Tensor): the operand.
    mean (float): the mean, or the means.
    std (float): the standard deviation, or the deviations.
    generator (Generator | None): where random numbers come from: the default generator if not given.

Example:
    >>> (torch.empty(2).log_normal_() > 0).all()
    tensor(True)""",
    "bernoulli_": """1 with a probability, else 0.

Args:
    input (Tensor): the operand.
    p (float): the probability, or the exponent of the norm.
    generator (Generator | None): where random numbers come from: the default generator if not given.

Example:
    >>> torch.empty(2).bernoulli_(1.0)
    tensor([1., 1.])""",
    "new_empty": """Memory that is not set, of this tensor's dtype and device.

Args:
    input (Tensor): the operand.
    size (Sequence[int]): the sizes of the result.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    layout (layout | None): the layout of the result: `torch.strided` by default.
    device (device | None): where the result lies: the default device if not given.
    pin_memory (bool | None): must be false: there is no memory to lock for another device.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.ones(2).new_empty((3,)).shape
    torch.Size([3])""",
    "new_empty_strided": """Memory that is not set, with sizes and strides.

Args:
    input (Tensor): the operand.
    size (Sequence[int]): the sizes of the result.
    stride (Sequence[int]): the distance between places, or the strides of the result in elements.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    layout (layout | None): the layout of the result: `torch.strided` by default.
    device (device | None): where the result lies: the default device if not given.
    pin_memory (bool | None): must be false: there is no memory to lock for another device.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.ones(2).new_empty_strided((2, 3), (1, 2)).stride()
    (1, 2)""",
    "new_full": """One value, of this tensor's dtype and device.

Args:
    input (Tensor): the operand.
    size (Sequence[int]): the sizes of the result.
    fill_value (Number): the value of every element.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    layout (layout | None): the layout of the result: `torch.strided` by default.
    device (device | None): where the result lies: the default device if not given.
    pin_memory (bool | None): must be false: there is no memory to lock for another device.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.ones(2).new_full((2,), 7)
    tensor([7., 7.])""",
    "new_ones": """Ones of this tensor's dtype and device.

Args:
    input (Tensor): the operand.
    size (Sequence[int]): the sizes of the result.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    layout (layout | None): the layout of the result: `torch.strided` by default.
    device (device | None): where the result lies: the default device if not given.
    pin_memory (bool | None): must be false: there is no memory to lock for another device.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.ones(2).new_ones(3)
    tensor([1., 1., 1.])""",
    "new_zeros": """Zeros of this tensor's dtype and device.

Args:
    input (Tensor): the operand.
    size (Sequence[int]): the sizes of the result.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    layout (layout | None): the layout of the result: `torch.strided` by default.
    device (device | None): where the result lies: the default device if not given.
    pin_memory (bool | None): must be false: there is no memory to lock for another device.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.ones(2).new_zeros(3)
    tensor([0., 0., 0.])""",
    "sum_to_size": """Sums over the dimensions along which other sizes would be broadcast to this
tensor's.

Args:
    input (Tensor): the operand.
    size (Sequence[int]): the sizes of the result.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.ones(2, 3).sum_to_size(1, 3)
    tensor([[2., 2., 2.]])""",
    "alias": """Another tensor over the same elements.

Args:
    input (Tensor): the operand.

Example:
    >>> torch.ones(2).alias()
    tensor([1., 1.])""",
    "zero_": """Zero in every element.

Args:
    input (Tensor): the operand.

Example:
    >>> torch.ones(2).zero_()
    tensor([0., 0.])""",
    "slice": """A view of every `step`-th slice from `start` up to, without, `end` along a
dimension.

Args:
    input (Tensor): the operand.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    start (int | None): the first number or position.
    end (int | None): the position behind the last, or the last number.
    step (int): the distance between neighbours.

Example:
    >>> torch.ops.aten.slice(torch.arange(5), 0, 1, 4)
    tensor([1, 2, 3])""",
}
