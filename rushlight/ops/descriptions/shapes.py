"""Docstrings of operators that change shapes, by name."""

DOCSTRINGS: dict[str, str] = {
    "reshape": """The elements in row-major order with other sizes, one of which may be -1; a view
where strides allow it.

Args:
    input (Tensor): the operand.
    shape (Sequence[int]): the sizes of the result; -1 stands for what is left.

Example:
    >>> torch.reshape(torch.arange(6), (2, -1))
    tensor([[0, 1, 2],
            [3, 4, 5]])""",
    "ravel": """All elements in one dimension, in row-major order.

Args:
    input (Tensor): the operand.

Example:
    >>> torch.ravel(torch.ones(2, 2)).shape
    torch.Size([4])""",
    "flatten": """Dimensions from `start_dim` to `end_dim` as one.

Args:
    input (Tensor): the operand.
    start_dim (int): the first dimension.
    end_dim (int): the last dimension.

Example:
    >>> torch.flatten(torch.ones(2, 3, 4), start_dim=1).shape
    torch.Size([2, 12])""",
    "unflatten": """One dimension as several.

Args:
    input (Tensor): the operand.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    sizes (Sequence[int]): the sizes of the new dimensions; one may be -1.

Example:
    >>> torch.unflatten(torch.ones(6), 0, (2, 3)).shape
    torch.Size([2, 3])""",
    "squeeze": """A view without dimensions of size 1, all or the given ones.

Args:
    input (Tensor): the operand.
    dim (Sequence[int]): the dimension, or dimensions, along which to work; negative ones count from the last.

Example:
    >>> torch.squeeze(torch.ones(1, 3, 1)).shape
    torch.Size([3])""",
    "unsqueeze": """A view with a dimension of size 1 at a place.

Args:
    input (Tensor): the operand.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.

Example:
    >>> torch.unsqueeze(torch.ones(3), 0).shape
    torch.Size([1, 3])""",
    "transpose": """A view with two dimensions exchanged.

Args:
    input (Tensor): the operand.
    dim0 (int): the first of two dimensions.
    dim1 (int): the first of two dimensions.

Example:
    >>> torch.transpose(torch.ones(2, 3), 0, 1).shape
    torch.Size([3, 2])""",
    "swapaxes": """Another name of `transpose`.

Args:
    input (Tensor): the operand.
    axis0 (int): the first of two dimensions.
    axis1 (int): the second of two dimensions.

Example:
    >>> torch.swapaxes(torch.ones(2, 3), 0, 1).shape
    torch.Size([3, 2])""",
    "swapdims": """Another name of `transpose`.

Args:
    input (Tensor): the operand.
    dim0 (int): the first of two dimensions.
    dim1 (int): the first of two dimensions.

Example:
    >>> torch.swapdims(torch.ones(2, 3), 0, 1).shape
    torch.Size([3, 2])""",
    "t": """A matrix transposed, as a view; tensors of fewer dimensions as they are.

Args:
    input (Tensor): the operand.

Example:
    >>> torch.t(torch.ones(2, 3)).shape
    torch.Size([3, 2])""",
    "adjoint": """The last two dimensions exchanged, and conjugated.

Args:
    input (Tensor): the operand.

Example:
    >>> torch.adjoint(torch.tensor([[1j, 0]]))
    tensor([[0.-1.j],
            [0.-0.j]])""",
    "permute": """A view with the dimensions in another order.

Args:
    input (Tensor): the operand.
    dims (Sequence[int]): the dimensions.

Example:
    >>> torch.permute(torch.ones(2, 3, 4), (2, 0, 1)).shape
    torch.Size([4, 2, 3])""",
    "movedim": """A view with some dimensions at other places, the others in their order.

Args:
    input (Tensor): the operand.
    source (int): what is taken or moved from.
    destination (int): the new places of the dimensions.

Example:
    >>> torch.movedim(torch.ones(2, 3, 4), 0, 2).shape
    torch.Size([3, 4, 2])""",
    "moveaxis": """Another name of `movedim`.

Args:
    input (Tensor): the operand.
    source (int): what is taken or moved from.
    destination (int): the new places of the dimensions.

Example:
    >>> torch.moveaxis(torch.ones(2, 3, 4), 0, 2).shape
    torch.Size([3, 4, 2])""",
    "broadcast_to": """A view with other sizes, to which the input is broadcast.

Args:
    input (Tensor): the operand.
    size (Sequence[int]): the sizes of the result.

Example:
    >>> torch.broadcast_to(torch.tensor([1, 2]), (2, 2))
    tensor([[1, 2],
            [1, 2]])""",
    "cat": """Tensors one behind another along a dimension; other sizes must agree, dtypes are
promoted.

Args:
    tensors (Sequence[Tensor]): the operands.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.cat([torch.ones(1, 2), torch.zeros(1, 2)])
    tensor([[1., 1.],
            [0., 0.]])""",
    "concat": """Another name of `cat`.

Args:
    tensors (Sequence[Tensor]): the operands.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.concat([torch.ones(1), torch.zeros(1)])
    tensor([1., 0.])""",
    "concatenate": """Another name of `cat`.

Args:
    tensors (Sequence[Tensor]): the operands.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.concatenate([torch.ones(1), torch.zeros(1)])
    tensor([1., 0.])""",
    "stack": """Tensors of the same sizes along a new dimension.

Args:
    tensors (Sequence[Tensor]): the operands.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.stack([torch.ones(2), torch.zeros(2)], dim=1)
    tensor([[1., 0.],
            [1., 0.]])""",
    "hstack": """Tensors one beside another: along dimension 1, vectors along 0.

Args:
    tensors (Sequence[Tensor]): the operands.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.hstack([torch.ones(1), torch.zeros(2)])
    tensor([1., 0., 0.])""",
    "vstack": """Tensors one below another; vectors count as rows.

Args:
    tensors (Sequence[Tensor]): the operands.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.vstack([torch.ones(2), torch.zeros(2)])
    tensor([[1., 1.],
            [0., 0.]])""",
    "row_stack": """Another name of `vstack`.

Args:
    tensors (Sequence[Tensor]): the operands.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.row_stack([torch.ones(2), torch.zeros(2)])
    tensor([[1., 1.],
            [0., 0.]])""",
    "dstack": """Tensors along the third dimension.

Args:
    tensors (Sequence[Tensor]): the operands.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.dstack([torch.ones(2), torch.zeros(2)]).shape
    torch.Size([1, 2, 2])""",
    "column_stack": """Vectors as columns, and matrices beside them.

Args:
    tensors (Sequence[Tensor]): the operands.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.column_stack([torch.ones(2), torch.zeros(2)])
    tensor([[1., 0.],
            [1., 0.]])""",
    "split": """Parts of a size, the last maybe smaller, or of given sizes, as views.

Args:
    input (Tensor): the operand.
    split_size (int): the size of a part, or of each.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.

Example:
    >>> torch.split(torch.arange(5), 2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))""",
    "split_with_sizes": """Parts of given sizes, as views.

Args:
    input (Tensor): the operand.
    split_sizes (Sequence[int]): the size of each part.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.

Example:
    >>> torch.split_with_sizes(torch.arange(3), [1, 2])
    (tensor([0]), tensor([1, 2]))""",
    "chunk": """At most so many parts of the same size, the last maybe smaller, as views.

Args:
    input (Tensor): the operand.
    chunks (int): into how many parts.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.

Example:
    >>> torch.chunk(torch.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))""",
    "tensor_split": """So many parts, sizes differing by at most one, or parts between indices, as views.

Args:
    input (Tensor): the operand.
    sections (int): into how many parts.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.

Example:
    >>> torch.tensor_split(torch.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))""",
    "hsplit": """Parts along dimension 1, of vectors along 0.

Args:
    input (Tensor): the operand.
    sections (int): into how many parts.

Example:
    >>> torch.hsplit(torch.arange(4), 2)
    (tensor([0, 1]), tensor([2, 3]))""",
    "vsplit": """Parts along dimension 0.

Args:
    input (Tensor): the operand.
    sections (int): into how many parts.

Example:
    >>> torch.vsplit(torch.ones(4, 1), 2)[0].shape
    torch.Size([2, 1])""",
    "dsplit": """Parts along dimension 2.

Args:
    input (Tensor): the operand.
    sections (int): into how many parts.

Example:
    >>> torch.dsplit(torch.ones(1, 1, 4), 2)[0].shape
    torch.Size([1, 1, 2])""",
    "unsafe_split": """`split` whose parts are no views.

Args:
    input (Tensor): the operand.
    split_size (int): the size of a part, or of each.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.

Example:
    >>> torch.unsafe_split(torch.arange(4), 2)
    (tensor([0, 1]), tensor([2, 3]))""",
    "unsafe_chunk": """`chunk` whose parts are no views.

Args:
    input (Tensor): the operand.
    chunks (int): into how many parts.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.

Example:
    >>> torch.unsafe_chunk(torch.arange(4), 2)
    (tensor([0, 1]), tensor([2, 3]))""",
    "unsafe_split_with_sizes": """`split_with_sizes` whose parts are no views.

Args:
    input (Tensor): the operand.
    split_sizes (Sequence[int]): the size of each part.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.

Example:
    >>> torch.unsafe_split_with_sizes(torch.arange(3), [1, 2])
    (tensor([0]), tensor([1, 2]))""",
    "unbind": """The slices along a dimension, as views without it.

Args:
    input (Tensor): the operand.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.

Example:
    >>> torch.unbind(torch.tensor([[1, 2], [3, 4]]))
    (tensor([1, 2]), tensor([3, 4]))""",
    "narrow": """A view of `length` slices from `start` on along a dimension.

Args:
    input (Tensor): the operand.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    start (int): the first number or position.
    length (int): the number of samples of the result.

Example:
    >>> torch.narrow(torch.arange(5), 0, 1, 3)
    tensor([1, 2, 3])""",
    "select": """A view of one slice along a dimension, without the dimension.

Args:
    input (Tensor): the operand.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    index (int): integer positions.

Example:
    >>> torch.select(torch.tensor([[1, 2], [3, 4]]), 0, 1)
    tensor([3, 4])""",
    "diagonal": """A view of the diagonal of two dimensions, as the last one.

Args:
    input (Tensor): the operand.
    offset (int): which diagonal: above the main one if positive.
    dim1 (int): the first of two dimensions.
    dim2 (int): the second of two dimensions.

Example:
    >>> torch.diagonal(torch.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])""",
    "as_strided": """A view with any sizes, strides and offset, in elements.

Args:
    input (Tensor): the operand.
    size (Sequence[int]): the sizes of the result.
    stride (Sequence[int]): the distance between places, or the strides of the result in elements.
    storage_offset (int | None): the place of the first element in memory, in elements.

Example:
    >>> torch.as_strided(torch.arange(4), (2, 2), (1, 1))
    tensor([[0, 1],
            [1, 2]])""",
    "tile": """Copies one behind another along each dimension.

Args:
    input (Tensor): the operand.
    dims (Sequence[int]): the dimensions.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.tile(torch.tensor([1, 2]), (2,))
    tensor([1, 2, 1, 2])""",
    "repeat_interleave": """Each element or slice so many times, or as often as the counts say.

Args:
    input (Tensor): the operand.
    repeats (int): how often, for all elements or for each.
    dim (int | None): the dimension, or dimensions, along which to work; negative ones count from the last.
    output_size (int | None): the sizes of the result's last dimensions, or its length.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.repeat_interleave(torch.tensor([1, 2]), 2)
    tensor([1, 1, 2, 2])""",
    "flip": """The order of dimensions turned round, as a copy.

Args:
    input (Tensor): the operand.
    dims (Sequence[int]): the dimensions.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.flip(torch.tensor([1, 2, 3]), (0,))
    tensor([3, 2, 1])""",
    "fliplr": """The order of dimension 1 turned round.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.fliplr(torch.tensor([[1, 2]]))
    tensor([[2, 1]])""",
    "flipud": """The order of dimension 0 turned round.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.flipud(torch.tensor([1, 2]))
    tensor([2, 1])""",
    "roll": """Elements moved along dimensions; what leaves at one end comes in at the other.

Args:
    input (Tensor): the operand.
    shifts (int | Sequence[int]): by how many places.
    dims (int | Sequence[int]): the dimensions.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.roll(torch.tensor([1, 2, 3]), 1)
    tensor([3, 1, 2])""",
    "rot90": """The plane of two dimensions turned by quarters.

Args:
    input (Tensor): the operand.
    k (int): how many, or which one, counted from 1.
    dims (Sequence[int]): the dimensions.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.rot90(torch.tensor([[1, 2], [3, 4]]))
    tensor([[2, 4],
            [1, 3]])""",
    "diag": """The diagonal of a matrix, or a matrix with a vector as diagonal.

Args:
    input (Tensor): the operand.
    diagonal (int): which diagonal: above the main one if positive.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.diag(torch.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])""",
    "diag_embed": """Matrices whose diagonals are the last dimension.

Args:
    input (Tensor): the operand.
    offset (int): which diagonal: above the main one if positive.
    dim1 (int): the first of two dimensions.
    dim2 (int): the second of two dimensions.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.diag_embed(torch.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])""",
    "diagflat": """A matrix with the flattened input as diagonal.

Args:
    input (Tensor): the operand.
    offset (int): which diagonal: above the main one if positive.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.diagflat(torch.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])""",
    "tril": """The lower triangle of matrices, 0 elsewhere.

Args:
    input (Tensor): the operand.
    diagonal (int): which diagonal: above the main one if positive.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.tril(torch.ones(2, 2))
    tensor([[1., 0.],
            [1., 1.]])""",
    "triu": """The upper triangle of matrices, 0 elsewhere.

Args:
    input (Tensor): the operand.
    diagonal (int): which diagonal: above the main one if positive.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.triu(torch.ones(2, 2))
    tensor([[1., 1.],
            [0., 1.]])""",
    "tril_indices": """The rows and columns of a lower triangle.

Args:
    row (int): the number of rows.
    col (int): the number of columns.
    offset (int): which diagonal: above the main one if positive.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    layout (layout | None): the layout of the result: `torch.strided` by default.
    device (device | None): where the result lies: the default device if not given.
    pin_memory (bool | None): must be false: there is no memory to lock for another device.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])""",
    "triu_indices": """The rows and columns of an upper triangle.

Args:
    row (int): the number of rows.
    col (int): the number of columns.
    offset (int): which diagonal: above the main one if positive.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    layout (layout | None): the layout of the result: `torch.strided` by default.
    device (device | None): where the result lies: the default device if not given.
    pin_memory (bool | None): must be false: there is no memory to lock for another device.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])""",
    "pixel_shuffle": """(..., C r^2, H, W) as (..., C, H r, W r): channels become pixels (Shi et al. 2016).

Args:
    input (Tensor): the operand.
    upscale_factor (int): by how much height and width grow.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.pixel_shuffle(torch.ones(1, 4, 2, 2), 2).shape
    torch.Size([1, 1, 4, 4])""",
    "pixel_unshuffle": """The inverse of `pixel_shuffle`.

Args:
    input (Tensor): the operand.
    downscale_factor (int): by how much height and width shrink.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.pixel_unshuffle(torch.ones(1, 1, 4, 4), 2).shape
    torch.Size([1, 4, 2, 2])""",
    "channel_shuffle": """Channels of groups dealt out in turn (Zhang et al. 2018).

Args:
    input (Tensor): the operand.
    groups (int): into how many groups the channels fall, each with its own kernel.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.channel_shuffle(torch.arange(4).view(1, 4, 1), 2).flatten()
    tensor([0, 2, 1, 3])""",
    "native_channel_shuffle": """Another name of `channel_shuffle`.

Args:
    input (Tensor): the operand.
    groups (int): into how many groups the channels fall, each with its own kernel.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.native_channel_shuffle(torch.ones(1, 4, 1), 2).shape
    torch.Size([1, 4, 1])""",
    "clone": """A copy, through which gradients go.

Args:
    input (Tensor): the operand.
    memory_format (memory_format | None): the order of elements in memory.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.clone(torch.ones(2))
    tensor([1., 1.])""",
    "detach": """The same elements without history, as a view.

Args:
    input (Tensor): the operand.

Example:
    >>> torch.detach(torch.ones(2, requires_grad=True)).requires_grad
    False""",
    "combinations": """All choices of r elements of a vector, as rows.

Args:
    input (Tensor): the operand.
    r (int): how many elements to choose.
    with_replacement (bool): whether an element may be chosen again.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.combinations(torch.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])""",
    "constant_pad_nd": """The input with a value around it; negative amounts crop.

Args:
    input (Tensor): the operand.
    pad (Sequence[int]): amounts for the last dimension first: left, right, then the one before.
    value (Number): a number, or the value at masked or chosen places.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.constant_pad_nd(torch.ones(2), (1, 0))
    tensor([0., 1., 1.])""",
}
