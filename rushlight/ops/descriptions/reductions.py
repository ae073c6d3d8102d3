"""Docstrings of operators that reduce, sort and accumulate, by name."""

DOCSTRINGS: dict[str, str] = {
    "sum": """The sum of all elements, or along dimensions. Integers and truth values are added as
int64.

Args:
    input (Tensor): the operand.
    dim (int | Sequence[int] | None): the dimension, or dimensions, along which to work; negative ones count
        from the last.
    keepdim (bool): keep reduced dimensions, with size 1.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.sum(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor(10.)
    >>> torch.sum(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=0)
    tensor([4., 6.])""",
    "prod": """The product of all elements, or along a dimension. Integers are multiplied as int64.

Args:
    input (Tensor): the operand.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    keepdim (bool): keep reduced dimensions, with size 1.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.prod(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=1)
    tensor([ 2., 12.])""",
    "mean": """The sum divided by the number of elements. Integers are refused unless a dtype is
given.

Args:
    input (Tensor): the operand.
    dim (int | Sequence[int] | None): the dimension, or dimensions, along which to work; negative ones count
        from the last.
    keepdim (bool): keep reduced dimensions, with size 1.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.mean(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=1)
    tensor([1.5000, 3.5000])""",
    "nansum": """The sum of the elements that are not NaN.

Args:
    input (Tensor): the operand.
    dim (int | Sequence[int] | None): the dimension, or dimensions, along which to work; negative ones count
        from the last.
    keepdim (bool): keep reduced dimensions, with size 1.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.nansum(torch.tensor([1.0, float('nan')]))
    tensor(1.)""",
    "nanmean": """The mean of the elements that are not NaN.

Args:
    input (Tensor): the operand.
    dim (int | Sequence[int] | None): the dimension, or dimensions, along which to work; negative ones count
        from the last.
    keepdim (bool): keep reduced dimensions, with size 1.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.nanmean(torch.tensor([1.0, float('nan')]))
    tensor(1.)""",
    "std": """The standard deviation: the root of the variance, by default the unbiased one.

Args:
    input (Tensor): the operand.
    dim (int | Sequence[int] | None): the dimension, or dimensions, along which to work; negative ones count
        from the last.
    unbiased (bool): whether one is taken off the number of elements.
    keepdim (bool): keep reduced dimensions, with size 1.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.std(torch.tensor([1.0, 2.0, 3.0]))
    tensor(1.)""",
    "var": """The mean square distance from the mean; n - correction stands in the denominator.

Args:
    input (Tensor): the operand.
    dim (int | Sequence[int] | None): the dimension, or dimensions, along which to work; negative ones count
        from the last.
    correction (Number | None): what is taken off the number of elements: 1 for the unbiased estimate.
    keepdim (bool): keep reduced dimensions, with size 1.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.var(torch.tensor([1.0, 2.0, 3.0]), correction=0)
    tensor(0.6667)""",
    "std_mean": """Standard deviation and mean.

Args:
    input (Tensor): the operand.
    dim (int | Sequence[int] | None): the dimension, or dimensions, along which to work; negative ones count
        from the last.
    unbiased (bool): whether one is taken off the number of elements.
    keepdim (bool): keep reduced dimensions, with size 1.

Example:
    >>> torch.std_mean(torch.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))""",
    "var_mean": """Variance and mean.

Args:
    input (Tensor): the operand.
    dim (int | Sequence[int] | None): the dimension, or dimensions, along which to work; negative ones count
        from the last.
    correction (Number | None): what is taken off the number of elements: 1 for the unbiased estimate.
    keepdim (bool): keep reduced dimensions, with size 1.

Example:
    >>> torch.var_mean(torch.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))""",
    "max": """The largest element; with a dimension the largest along it and where they stand;
with a second tensor `maximum`. NaN is larger than anything.

Args:
    input (Tensor): the operand.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    keepdim (bool): keep reduced dimensions, with size 1.

Example:
    >>> torch.max(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor(4.)
    >>> torch.max(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=1)
    torch.return_types.max(
    values=tensor([2., 4.]),
    indices=tensor([1, 1]))""",
    "min": """The smallest element; with a dimension the smallest along it and where they stand;
with a second tensor `minimum`. NaN is smaller than anything.

Args:
    input (Tensor): the operand.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    keepdim (bool): keep reduced dimensions, with size 1.

Example:
    >>> torch.min(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor(1.)
    >>> torch.min(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=1)
    torch.return_types.min(
    values=tensor([1., 3.]),
    indices=tensor([0, 0]))""",
    "amax": """The largest elements along dimensions; a gradient is shared among equal ones.

Args:
    input (Tensor): the operand.
    dim (int | Sequence[int]): the dimension, or dimensions, along which to work; negative ones count from the
        last.
    keepdim (bool): keep reduced dimensions, with size 1.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.amax(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=(0, 1))
    tensor(4.)""",
    "amin": """The smallest elements along dimensions; a gradient is shared among equal ones.

Args:
    input (Tensor): the operand.
    dim (int | Sequence[int]): the dimension, or dimensions, along which to work; negative ones count from the
        last.
    keepdim (bool): keep reduced dimensions, with size 1.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.amin(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=0)
    tensor([1., 2.])""",
    "aminmax": """The smallest and the largest elements.

Args:
    input (Tensor): the operand.
    dim (int | None): the dimension, or dimensions, along which to work; negative ones count from the last.
    keepdim (bool): keep reduced dimensions, with size 1.

Example:
    >>> torch.aminmax(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    torch.return_types.aminmax(
    min=tensor(1.),
    max=tensor(4.))""",
    "argmax": """Where the largest element stands, the first of equal ones; without a dimension in
the flattened input.

Args:
    input (Tensor): the operand.
    dim (int | None): the dimension, or dimensions, along which to work; negative ones count from the last.
    keepdim (bool): keep reduced dimensions, with size 1.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.argmax(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor(3)""",
    "argmin": """Where the smallest element stands, the first of equal ones.

Args:
    input (Tensor): the operand.
    dim (int | None): the dimension, or dimensions, along which to work; negative ones count from the last.
    keepdim (bool): keep reduced dimensions, with size 1.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.argmin(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=1)
    tensor([0, 0])""",
    "all": """Whether all elements, or those along dimensions, are true.

Args:
    input (Tensor): the operand.
    dim (Sequence[int] | None): the dimension, or dimensions, along which to work; negative ones count from the
        last.
    keepdim (bool): keep reduced dimensions, with size 1.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.all(torch.tensor([True, False]))
    tensor(False)""",
    "any": """Whether an element, or one along dimensions, is true.

Args:
    input (Tensor): the operand.
    dim (Sequence[int] | None): the dimension, or dimensions, along which to work; negative ones count from the
        last.
    keepdim (bool): keep reduced dimensions, with size 1.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.any(torch.tensor([True, False]))
    tensor(True)""",
    "hash_tensor": """A number that differs, most likely, where elements do: the exclusive or of their bits, those of
floats as float64, of integers as 64-bit ones. The result is uint64.

Args:
    input (Tensor): the operand; not complex.
    dim (Sequence[int]): the dimension, or dimensions, along which to work; all where there are none.
    keepdim (bool): keep reduced dimensions, with size 1.
    mode (int): 0, the only one.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.hash_tensor(torch.tensor([1, 2, 4]))
    tensor(7, dtype=torch.uint64)""",
    "count_nonzero": """How many elements are not 0.

Args:
    input (Tensor): the operand.
    dim (Sequence[int]): the dimension, or dimensions, along which to work; negative ones count from the last.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.count_nonzero(torch.tensor([0, 3, 0, 5]))
    tensor(2)""",
    "median": """The middle element, of an even number the lower one; with a dimension the middle
ones and where they stand.

Args:
    input (Tensor): the operand.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    keepdim (bool): keep reduced dimensions, with size 1.

Example:
    >>> torch.median(torch.tensor([3.0, 1.0, 2.0, 9.0]))
    tensor(2.)""",
    "nanmedian": """The median of the elements that are not NaN.

Args:
    input (Tensor): the operand.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    keepdim (bool): keep reduced dimensions, with size 1.

Example:
    >>> torch.nanmedian(torch.tensor([1.0, float('nan'), 3.0]))
    tensor(1.)""",
    "mode": """The most frequent element along a dimension, the smallest of equally frequent ones,
and the last place where it stands.

Args:
    input (Tensor): the operand.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    keepdim (bool): keep reduced dimensions, with size 1.

Example:
    >>> torch.mode(torch.tensor([1, 2, 2, 3]))
    torch.return_types.mode(
    values=tensor(2),
    indices=tensor(2))""",
    "quantile": """The values below which the shares q of the elements lie.

Args:
    input (Tensor): the operand.
    q (Tensor): which quantiles, from 0 to 1.
    dim (int | None): the dimension, or dimensions, along which to work; negative ones count from the last.
    keepdim (bool): keep reduced dimensions, with size 1.
    interpolation (str): between two elements: "linear", "lower", "higher", "midpoint" or "nearest".
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.quantile(torch.tensor([0.0, 1.0, 2.0, 3.0]), 0.5)
    tensor(1.5000)""",
    "nanquantile": """Quantiles of the elements that are not NaN.

Args:
    input (Tensor): the operand.
    q (Tensor): which quantiles, from 0 to 1.
    dim (int | None): the dimension, or dimensions, along which to work; negative ones count from the last.
    keepdim (bool): keep reduced dimensions, with size 1.
    interpolation (str): between two elements: "linear", "lower", "higher", "midpoint" or "nearest".
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.nanquantile(torch.tensor([0.0, float('nan'), 2.0]), 0.5)
    tensor(1.)""",
    "kthvalue": """The k-th smallest element along a dimension, and where it stands.

Args:
    input (Tensor): the operand.
    k (int): how many, or which one, counted from 1.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    keepdim (bool): keep reduced dimensions, with size 1.

Example:
    >>> torch.kthvalue(torch.tensor([3, 1, 2]), 2)
    torch.return_types.kthvalue(
    values=tensor(2),
    indices=tensor(2))""",
    "topk": """The k largest elements along a dimension, and where they stand.

Args:
    input (Tensor): the operand.
    k (int): how many, or which one, counted from 1.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    largest (bool): whether the largest are meant, not the smallest.
    sorted (bool): whether results are in order.

Example:
    >>> torch.topk(torch.tensor([3, 1, 2]), 2)
    torch.return_types.topk(
    values=tensor([3, 2]),
    indices=tensor([0, 2]))""",
    "sort": """The elements in order along a dimension, and where they stood.

Args:
    input (Tensor): the operand.
    stable (bool | None): whether equal elements keep their order.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    descending (bool): whether the largest come first.

Example:
    >>> torch.sort(torch.tensor([3, 1, 2]))
    torch.return_types.sort(
    values=tensor([1, 2, 3]),
    indices=tensor([1, 2, 0]))""",
    "argsort": """Where the elements in order stand.

Args:
    input (Tensor): the operand.
    stable (bool): whether equal elements keep their order.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    descending (bool): whether the largest come first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.argsort(torch.tensor([3, 1, 2]))
    tensor([1, 2, 0])""",
    "msort": """The elements in order along the first dimension.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.msort(torch.tensor([3, 1, 2]))
    tensor([1, 2, 3])""",
    "logsumexp": """log of the sum of e^x, without overflow on the way.

Args:
    input (Tensor): the operand.
    dim (int | Sequence[int]): the dimension, or dimensions, along which to work; negative ones count from the
        last.
    keepdim (bool): keep reduced dimensions, with size 1.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.logsumexp(torch.tensor([0.0, 0.0]), 0)
    tensor(0.6931)""",
    "cumsum": """The sums of the elements up to each place.

Args:
    input (Tensor): the operand.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.cumsum(torch.tensor([1, 2, 3]), 0)
    tensor([1, 3, 6])""",
    "cumprod": """The products of the elements up to each place.

Args:
    input (Tensor): the operand.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.cumprod(torch.tensor([1, 2, 3]), 0)
    tensor([1, 2, 6])""",
    "cummax": """The largest element up to each place, and where it stands.

Args:
    input (Tensor): the operand.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.

Example:
    >>> torch.cummax(torch.tensor([1, 3, 2]), 0)
    torch.return_types.cummax(
    values=tensor([1, 3, 3]),
    indices=tensor([0, 1, 1]))""",
    "cummin": """The smallest element up to each place, and where it stands.

Args:
    input (Tensor): the operand.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.

Example:
    >>> torch.cummin(torch.tensor([2, 1, 3]), 0)
    torch.return_types.cummin(
    values=tensor([2, 1, 1]),
    indices=tensor([0, 1, 1]))""",
    "logcumsumexp": """`logsumexp` of the elements up to each place.

Args:
    input (Tensor): the operand.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.logcumsumexp(torch.tensor([0.0, 0.0]), 0)
    tensor([0.0000, 0.6931])""",
    "cumulative_trapezoid": """Integrals up to each point by the trapezoidal rule.

Args:
    y (Tensor): the second operand, or the values of a function.
    x (Tensor): the first operand.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.cumulative_trapezoid(torch.tensor([1.0, 3.0, 5.0]))
    tensor([2., 6.])""",
    "trapezoid": """The integral along a dimension by the trapezoidal rule.

Args:
    y (Tensor): the second operand, or the values of a function.
    x (Tensor): the first operand.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.trapezoid(torch.tensor([1.0, 3.0, 5.0]))
    tensor(6.)""",
    "trapz": """Another name of `trapezoid`.

Args:
    y (Tensor): the second operand, or the values of a function.
    x (Tensor): the first operand.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.trapz(torch.tensor([1.0, 3.0]))
    tensor(2.)""",
    "dist": """The p-norm of input - other.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    p (Number): the probability, or the exponent of the norm.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.dist(torch.tensor([3.0, 0.0]), torch.tensor([0.0, 4.0]))
    tensor(5.)""",
    "bincount": """How often each nonnegative integer occurs, or the sum of its weights.

Args:
    input (Tensor): the operand.
    weights (Tensor | None): a weight per element.
    minlength (int): the least number of bins.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.bincount(torch.tensor([0, 2, 2]))
    tensor([1, 0, 2])""",
    "histc": """How many elements lie in each of equal bins between two bounds.

Args:
    input (Tensor): the operand.
    bins (int): the number of bins, or their edges.
    min (Number): the lower bound.
    max (Number): the upper bound.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.histc(torch.tensor([1.0, 2.0, 1.0]), bins=2, min=0, max=4)
    tensor([2., 1.])""",
    "histogram": """How many elements, or how much weight, lie in each bin, and the bins' edges.

Args:
    input (Tensor): the operand.
    bins (int): the number of bins, or their edges.
    range (Sequence[float] | None): the lowest and highest edge.
    weight (Tensor | None): the weights, or a factor per class or channel.
    density (bool): whether the area is 1.

Example:
    >>> torch.histogram(torch.tensor([1.0, 2.0, 1.0]), bins=2, range=(0.0, 4.0))
    torch.return_types.histogram(
    hist=tensor([2., 1.]),
    bin_edges=tensor([0., 2., 4.]))""",
    "histogramdd": """A histogram of points in several dimensions.

Args:
    input (Tensor): the operand.
    bins (Sequence[int]): the number of bins, or their edges.
    range (Sequence[float] | None): the lowest and highest edge.
    weight (Tensor | None): the weights, or a factor per class or channel.
    density (bool): whether the area is 1.

Example:
    >>> torch.histogramdd(torch.tensor([[0.0, 1.0], [1.0, 0.0]]), bins=[2, 2]).hist
    tensor([[0., 1.],
            [1., 0.]])""",
    "corrcoef": """Pearson's correlation coefficients of the rows.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.corrcoef(torch.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])""",
    "cov": """The covariances of the rows, each of which is a variable.

Args:
    input (Tensor): the operand.
    correction (int): what is taken off the number of elements: 1 for the unbiased estimate.
    fweights (Tensor | None): how often each observation counts.
    aweights (Tensor | None): how much each observation weighs.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.cov(torch.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])""",
    "renorm": """Each slice along a dimension scaled down to a p-norm of at most maxnorm.

Args:
    input (Tensor): the operand.
    p (Number): the probability, or the exponent of the norm.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    maxnorm (Number): the largest norm that a slice may have.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.renorm(torch.tensor([[3.0, 4.0]]), 2, 0, 1.0)
    tensor([[0.6000, 0.8000]])""",
    "frobenius_norm": """The root of the sum of squares.

Args:
    input (Tensor): the operand.
    dim (int | Sequence[int]): the dimension, or dimensions, along which to work; negative ones count from the
        last.
    keepdim (bool): keep reduced dimensions, with size 1.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.frobenius_norm(torch.tensor([[3.0, 4.0]]), (0, 1))
    tensor(5.)""",
    "nuclear_norm": """The sum of singular values.

Args:
    input (Tensor): the operand.
    dim (int | Sequence[int]): the dimension, or dimensions, along which to work; negative ones count from the
        last.
    keepdim (bool): keep reduced dimensions, with size 1.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.nuclear_norm(torch.eye(2))
    tensor(2.)""",
    "norm_except_dim": """The norm over all dimensions but one.

Args:
    v (Tensor): weights with their directions.
    pow (int): the exponent of the norm.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.norm_except_dim(torch.tensor([[3.0, 4.0]]), 2, 0)
    tensor([[5.]])""",
    "gradient": """Derivatives by differences: central ones inside, one-sided ones at the edges.

Args:
    input (Tensor): the operand.
    spacing (Number | None): the distances between points, or their coordinates.
    dim (int | None): the dimension, or dimensions, along which to work; negative ones count from the last.
    edge_order (int): 1 or 2: how exact the differences at the edges are.

Example:
    >>> torch.gradient(torch.tensor([1.0, 4.0, 9.0]))
    (tensor([3., 4., 5.]),)""",
    "diff": """Differences of neighbours, n times.

Args:
    input (Tensor): the operand.
    n (int): the order, or the number of points.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    prepend (Tensor | None): what is put before the input.
    append (Tensor | None): what is put behind the input.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.diff(torch.tensor([1, 4, 9]))
    tensor([3, 5])""",
}
