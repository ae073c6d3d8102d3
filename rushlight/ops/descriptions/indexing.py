"""Docstrings of operators that pick and write elements, by name."""

DOCSTRINGS: dict[str, str] = {
    "where": """The elements of the second operand where the condition is true, of the third
elsewhere, broadcast; with a condition alone the indices where it is.

Args:
    condition (Tensor): true where `self` is chosen.
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.where(torch.tensor([True, False]), torch.tensor([1.0, 2.0]), 0.0)
    tensor([1., 0.])""",
    "gather": """For each place the element whose index along a dimension `index` says.

Args:
    input (Tensor): the operand.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    index (Tensor): integer positions.
    sparse_grad (bool): must be false.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.gather(torch.tensor([[1, 2], [3, 4]]), 1, torch.tensor([[0], [1]]))
    tensor([[1],
            [4]])""",
    "scatter": """A copy in which the values are written where `index` says along a dimension.

Args:
    input (Tensor): the operand.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    index (Tensor): integer positions.
    src (Tensor): the values that are written.
    reduce (str): how values that meet are combined: "sum", "prod", "mean", "amax" or "amin".
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.scatter(torch.zeros(3), 0, torch.tensor([2, 0]), torch.tensor([5.0, 6.0]))
    tensor([6., 0., 5.])""",
    "scatter_add": """A copy to which the values are added where `index` says along a dimension.

Args:
    input (Tensor): the operand.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    index (Tensor): integer positions.
    src (Tensor): the values that are written.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.scatter_add(torch.zeros(2), 0, torch.tensor([1, 1]), torch.tensor([5.0, 6.0]))
    tensor([ 0., 11.])""",
    "scatter_reduce": """A copy in which values that meet at a place are combined.

Args:
    input (Tensor): the operand.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    index (Tensor): integer positions.
    src (Tensor): the values that are written.
    reduce (str): how values that meet are combined: "sum", "prod", "mean", "amax" or "amin".
    include_self (bool): whether the values that were there count, too.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.scatter_reduce(torch.zeros(2), 0, torch.tensor([1, 1]), torch.tensor([5.0, 6.0]), 'amax')
    tensor([0., 6.])""",
    "index_select": """The slices along a dimension at the given positions, as a copy. IndexError for one
out of range.

Args:
    input (Tensor): the operand.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    index (Tensor): integer positions.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.index_select(torch.tensor([10, 20, 30]), 0, torch.tensor([2, 0]))
    tensor([30, 10])""",
    "index_add": """A copy with alpha * source added to the slices at the given positions.

Args:
    input (Tensor): the operand.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    index (Tensor): integer positions.
    source (Tensor): what is taken or moved from.
    alpha (Number): a factor: for `other`, or for the product.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.index_add(torch.zeros(3), 0, torch.tensor([0, 0]), torch.tensor([1.0, 2.0]))
    tensor([3., 0., 0.])""",
    "index_copy": """A copy with slices written at the given positions.

Args:
    input (Tensor): the operand.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    index (Tensor): integer positions.
    source (Tensor): what is taken or moved from.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.index_copy(torch.zeros(3), 0, torch.tensor([2]), torch.tensor([7.0]))
    tensor([0., 0., 7.])""",
    "index_fill": """A copy with a value in the slices at the given positions.

Args:
    input (Tensor): the operand.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    index (Tensor): integer positions.
    value (Number): a number, or the value at masked or chosen places.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.index_fill(torch.zeros(3), 0, torch.tensor([1]), 9.0)
    tensor([0., 9., 0.])""",
    "index_put": """A copy with values at the places that several index tensors name.

Args:
    input (Tensor): the operand.
    indices (Sequence[Tensor]): positions at which to split, or integer positions.
    values (Tensor): the values to write.
    accumulate (bool): whether values are added, not written.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.index_put(torch.zeros(3), (torch.tensor([1]),), torch.tensor([4.0]))
    tensor([0., 4., 0.])""",
    "index_reduce": """A copy in which slices that meet at a position are combined.

Args:
    input (Tensor): the operand.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    index (Tensor): integer positions.
    source (Tensor): what is taken or moved from.
    reduce (str): how values that meet are combined: "sum", "prod", "mean", "amax" or "amin".
    include_self (bool): whether the values that were there count, too.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.index_reduce(torch.ones(2), 0, torch.tensor([0, 0]), torch.tensor([2.0, 3.0]), 'prod')
    tensor([6., 1.])""",
    "masked_fill": """A copy with a value where the mask is true.

Args:
    input (Tensor): the operand.
    mask (Tensor): true where something happens; broadcast with the input.
    value (Number): a number, or the value at masked or chosen places.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.masked_fill(torch.zeros(2), torch.tensor([True, False]), 3.0)
    tensor([3., 0.])""",
    "masked_select": """The elements where the mask is true, in one dimension.

Args:
    input (Tensor): the operand.
    mask (Tensor): true where something happens; broadcast with the input.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.masked_select(torch.tensor([1, 2, 3]), torch.tensor([True, False, True]))
    tensor([1, 3])""",
    "masked_scatter": """A copy with the elements of `source`, in order, where the mask is true.

Args:
    input (Tensor): the operand.
    mask (Tensor): true where something happens; broadcast with the input.
    source (Tensor): what is taken or moved from.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.masked_scatter(torch.zeros(3), torch.tensor([True, False, True]), torch.tensor([1.0, 2.0]))
    tensor([1., 0., 2.])""",
    "take": """The elements at positions in row-major order.

Args:
    input (Tensor): the operand.
    index (Tensor): integer positions.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.take(torch.tensor([[1, 2], [3, 4]]), torch.tensor([0, 3]))
    tensor([1, 4])""",
    "take_along_dim": """The elements along a dimension at positions that are broadcast with the input.

Args:
    input (Tensor): the operand.
    indices (Tensor): positions at which to split, or integer positions.
    dim (int | None): the dimension, or dimensions, along which to work; negative ones count from the last.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.take_along_dim(torch.tensor([[3, 1]]), torch.tensor([[1]]), dim=1)
    tensor([[1]])""",
    "put": """A copy with values at positions in row-major order.

Args:
    input (Tensor): the operand.
    index (Tensor): integer positions.
    source (Tensor): what is taken or moved from.
    accumulate (bool): whether values are added, not written.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.put(torch.zeros(3), torch.tensor([1]), torch.tensor([5.0]))
    tensor([0., 5., 0.])""",
    "argwhere": """The indices of elements that are not 0, as rows.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.argwhere(torch.tensor([0, 3, 4]))
    tensor([[1],
            [2]])""",
    "nonzero_static": """The indices of the first `size` elements that are not 0, as rows; the rest is
filled.

Args:
    input (Tensor): the operand.
    size (int): the sizes of the result.
    fill_value (int): the value of every element.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.nonzero_static(torch.tensor([0, 3]), size=2)
    tensor([[ 1],
            [-1]])""",
    "searchsorted": """Where each value would be inserted so that a sequence stays in order.

Args:
    sorted_sequence (Tensor): ascending values along the last dimension.
    input (Tensor): the operand.
    out_int32 (bool): whether the result is int32, not int64.
    right (bool): whether a boundary belongs to the bin on its right.
    side (str | None): "left" or "right": on which side of equal values.
    sorter (Tensor | None): an order that sorts the sequence.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.searchsorted(torch.tensor([1, 3, 5]), torch.tensor([3, 4]))
    tensor([1, 2])""",
    "bucketize": """Into which bin between ascending boundaries each value falls.

Args:
    input (Tensor): the operand.
    boundaries (Tensor): ascending edges.
    out_int32 (bool): whether the result is int32, not int64.
    right (bool): whether a boundary belongs to the bin on its right.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.bucketize(torch.tensor([3, 6]), torch.tensor([1, 3, 5]))
    tensor([1, 3])""",
    "diagonal_scatter": """A copy in which the diagonal is replaced.

Args:
    input (Tensor): the operand.
    src (Tensor): the values that are written.
    offset (int): which diagonal: above the main one if positive.
    dim1 (int): the first of two dimensions.
    dim2 (int): the second of two dimensions.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.diagonal_scatter(torch.zeros(2, 2), torch.ones(2))
    tensor([[1., 0.],
            [0., 1.]])""",
    "select_scatter": """A copy in which one slice is replaced.

Args:
    input (Tensor): the operand.
    src (Tensor): the values that are written.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    index (int): integer positions.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.select_scatter(torch.zeros(2, 2), torch.ones(2), 0, 1)
    tensor([[0., 0.],
            [1., 1.]])""",
    "slice_scatter": """A copy in which a range of slices is replaced.

Args:
    input (Tensor): the operand.
    src (Tensor): the values that are written.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    start (int | None): the first number or position.
    end (int | None): the position behind the last, or the last number.
    step (int): the distance between neighbours.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.slice_scatter(torch.zeros(3), torch.ones(1), 0, 1, 2)
    tensor([0., 1., 0.])""",
    "as_strided_scatter": """A copy in which what `as_strided` would view is replaced.

Args:
    input (Tensor): the operand.
    src (Tensor): the values that are written.
    size (Sequence[int]): the sizes of the result.
    stride (Sequence[int]): the distance between places, or the strides of the result in elements.
    storage_offset (int | None): the place of the first element in memory, in elements.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.as_strided_scatter(torch.zeros(3), torch.ones(2), (2,), (1,))
    tensor([1., 1., 0.])""",
    "segment_reduce": """The values of neighbouring segments, combined.

Args:
    data (Tensor): the values.
    reduce (str): how values that meet are combined: "sum", "prod", "mean", "amax" or "amin".
    lengths (Tensor | None): the length of each segment.
    indices (Tensor | None): positions at which to split, or integer positions.
    offsets (Tensor | None): where each segment begins.
    axis (int): the dimension.
    unsafe (bool): skip the checks.
    initial (Number | None): the value of an empty segment.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.segment_reduce(torch.tensor([1.0, 2.0, 3.0]), 'sum', lengths=torch.tensor([2, 1]))
    tensor([3., 3.])""",
}
