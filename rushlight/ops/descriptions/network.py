"""Docstrings of operators of networks and signals, by name."""

DOCSTRINGS: dict[str, str] = {
    "conv1d": """Cross-correlation of sequences: input (N, C, L), weight (C_out, C / groups, K).

Args:
    input (Tensor): the operand.
    weight (Tensor): the weights, or a factor per class or channel.
    bias (Tensor | None): what is added to each output channel.
    stride (int | Sequence[int]): the distance between places, or the strides of the result in elements.
    padding (int | Sequence[int]): how much is added on each side of the spatial dimensions.
    dilation (int | Sequence[int]): the distance between the elements of a kernel or window.
    groups (int): into how many groups the channels fall, each with its own kernel.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.conv1d(torch.ones(1, 1, 4), torch.ones(1, 1, 2))
    tensor([[[2., 2., 2.]]])""",
    "conv2d": """Cross-correlation of images: input (N, C, H, W), weight (C_out, C / groups, KH, KW).

Args:
    input (Tensor): the operand.
    weight (Tensor): the weights, or a factor per class or channel.
    bias (Tensor | None): what is added to each output channel.
    stride (int | Sequence[int]): the distance between places, or the strides of the result in elements.
    padding (int | Sequence[int]): how much is added on each side of the spatial dimensions.
    dilation (int | Sequence[int]): the distance between the elements of a kernel or window.
    groups (int): into how many groups the channels fall, each with its own kernel.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.conv2d(torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2))
    tensor([[[[4., 4.],
              [4., 4.]]]])""",
    "conv3d": """Cross-correlation of volumes: input (N, C, D, H, W).

Args:
    input (Tensor): the operand.
    weight (Tensor): the weights, or a factor per class or channel.
    bias (Tensor | None): what is added to each output channel.
    stride (int | Sequence[int]): the distance between places, or the strides of the result in elements.
    padding (int | Sequence[int]): how much is added on each side of the spatial dimensions.
    dilation (int | Sequence[int]): the distance between the elements of a kernel or window.
    groups (int): into how many groups the channels fall, each with its own kernel.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.conv3d(torch.ones(1, 1, 2, 2, 2), torch.ones(1, 1, 2, 2, 2)).flatten()
    tensor([8.])""",
    "conv_transpose1d": """The transposed convolution: the gradient of `conv1d` with respect to its input.

Args:
    input (Tensor): the operand.
    weight (Tensor): the weights, or a factor per class or channel.
    bias (Tensor | None): what is added to each output channel.
    stride (int | Sequence[int]): the distance between places, or the strides of the result in elements.
    padding (int | Sequence[int]): how much is added on each side of the spatial dimensions.
    output_padding (int | Sequence[int]): what is added to one side of the result.
    groups (int): into how many groups the channels fall, each with its own kernel.
    dilation (int | Sequence[int]): the distance between the elements of a kernel or window.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.conv_transpose1d(torch.ones(1, 1, 2), torch.ones(1, 1, 2)).shape
    torch.Size([1, 1, 3])""",
    "conv_transpose2d": """The transposed convolution: the gradient of `conv2d` with respect to its input.

Args:
    input (Tensor): the operand.
    weight (Tensor): the weights, or a factor per class or channel.
    bias (Tensor | None): what is added to each output channel.
    stride (int | Sequence[int]): the distance between places, or the strides of the result in elements.
    padding (int | Sequence[int]): how much is added on each side of the spatial dimensions.
    output_padding (int | Sequence[int]): what is added to one side of the result.
    groups (int): into how many groups the channels fall, each with its own kernel.
    dilation (int | Sequence[int]): the distance between the elements of a kernel or window.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.conv_transpose2d(torch.ones(1, 1, 2, 2), torch.ones(1, 1, 2, 2)).shape
    torch.Size([1, 1, 3, 3])""",
    "conv_transpose3d": """The transposed convolution: the gradient of `conv3d` with respect to its input.

Args:
    input (Tensor): the operand.
    weight (Tensor): the weights, or a factor per class or channel.
    bias (Tensor | None): what is added to each output channel.
    stride (int | Sequence[int]): the distance between places, or the strides of the result in elements.
    padding (int | Sequence[int]): how much is added on each side of the spatial dimensions.
    output_padding (int | Sequence[int]): what is added to one side of the result.
    groups (int): into how many groups the channels fall, each with its own kernel.
    dilation (int | Sequence[int]): the distance between the elements of a kernel or window.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.conv_transpose3d(torch.ones(1, 1, 2, 2, 2), torch.ones(1, 1, 2, 2, 2)).shape
    torch.Size([1, 1, 3, 3, 3])""",
    "conv_tbc": """Convolution of sequences with time first: (T, N, C), weight (K, C, C_out).

Args:
    input (Tensor): the operand.
    weight (Tensor): the weights, or a factor per class or channel.
    bias (Tensor): what is added to each output channel.
    pad (int): amounts for the last dimension first: left, right, then the one before.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.conv_tbc(torch.ones(3, 1, 1), torch.ones(2, 1, 1), torch.zeros(1)).flatten()
    tensor([2., 2.])""",
    "convolution": """Any convolution, by the number of spatial dimensions.

Args:
    input (Tensor): the operand.
    weight (Tensor): the weights, or a factor per class or channel.
    bias (Tensor | None): what is added to each output channel.
    stride (Sequence[int]): the distance between places, or the strides of the result in elements.
    padding (Sequence[int]): how much is added on each side of the spatial dimensions.
    dilation (Sequence[int]): the distance between the elements of a kernel or window.
    transposed (bool): whether it is the transposed convolution.
    output_padding (Sequence[int]): what is added to one side of the result.
    groups (int): into how many groups the channels fall, each with its own kernel.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.convolution(torch.ones(1, 1, 3), torch.ones(1, 1, 2), None, [1], [0], [1], False, [0], 1)
    tensor([[[2., 2.]]])""",
    "avg_pool1d": """The averages of windows of sequences.

Args:
    input (Tensor): the operand.
    kernel_size (int | Sequence[int]): the size of the window.
    stride (int | Sequence[int]): the distance between places, or the strides of the result in elements.
    padding (int | Sequence[int]): how much is added on each side of the spatial dimensions.
    ceil_mode (bool): whether a window that is only partly inside counts.
    count_include_pad (bool): whether padding counts in the average.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.avg_pool1d(torch.arange(4.0).view(1, 1, 4), 2)
    tensor([[[0.5000, 2.5000]]])""",
    "max_pool1d": """The largest elements of windows of sequences.

Args:
    input (Tensor): the operand.
    kernel_size (int | Sequence[int]): the size of the window.
    stride (int | Sequence[int]): the distance between places, or the strides of the result in elements.
    padding (int | Sequence[int]): how much is added on each side of the spatial dimensions.
    dilation (int | Sequence[int]): the distance between the elements of a kernel or window.
    ceil_mode (bool): whether a window that is only partly inside counts.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.max_pool1d(torch.arange(4.0).view(1, 1, 4), 2)
    tensor([[[1., 3.]]])""",
    "max_pool2d": """The largest elements of windows of images.

Args:
    input (Tensor): the operand.
    kernel_size (int | Sequence[int]): the size of the window.
    stride (int | Sequence[int]): the distance between places, or the strides of the result in elements.
    padding (int | Sequence[int]): how much is added on each side of the spatial dimensions.
    dilation (int | Sequence[int]): the distance between the elements of a kernel or window.
    ceil_mode (bool): whether a window that is only partly inside counts.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.max_pool2d(torch.arange(4.0).view(1, 1, 2, 2), 2)
    tensor([[[[3.]]]])""",
    "max_pool3d": """The largest elements of windows of volumes.

Args:
    input (Tensor): the operand.
    kernel_size (int | Sequence[int]): the size of the window.
    stride (int | Sequence[int]): the distance between places, or the strides of the result in elements.
    padding (int | Sequence[int]): how much is added on each side of the spatial dimensions.
    dilation (int | Sequence[int]): the distance between the elements of a kernel or window.
    ceil_mode (bool): whether a window that is only partly inside counts.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.max_pool3d(torch.arange(8.0).view(1, 1, 2, 2, 2), 2).flatten()
    tensor([7.])""",
    "max_pool1d_with_indices": """`max_pool1d`, and where the largest elements stand.

Args:
    input (Tensor): the operand.
    kernel_size (int | Sequence[int]): the size of the window.
    stride (int | Sequence[int]): the distance between places, or the strides of the result in elements.
    padding (int | Sequence[int]): how much is added on each side of the spatial dimensions.
    dilation (int | Sequence[int]): the distance between the elements of a kernel or window.
    ceil_mode (bool): whether a window that is only partly inside counts.

Example:
    >>> torch.max_pool1d_with_indices(torch.arange(4.0).view(1, 1, 4), 2)
    (tensor([[[1., 3.]]]), tensor([[[1, 3]]]))""",
    "adaptive_avg_pool1d": """Averages of windows that cover sequences so that there are so many.

Args:
    input (Tensor): the operand.
    output_size (int | Sequence[int]): the sizes of the result's last dimensions, or its length.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.adaptive_avg_pool1d(torch.arange(4.0).view(1, 1, 4), 2)
    tensor([[[0.5000, 2.5000]]])""",
    "adaptive_max_pool1d": """The largest elements of such windows, and where they stand.

Args:
    input (Tensor): the operand.
    output_size (int | Sequence[int]): the sizes of the result's last dimensions, or its length.

Example:
    >>> torch.adaptive_max_pool1d(torch.arange(4.0).view(1, 1, 4), 2)
    (tensor([[[1., 3.]]]), tensor([[[1, 3]]]))""",
    "batch_norm": """Zero mean and unit variance per channel, over the batch in training and by running
averages otherwise, then weight and bias (Ioffe and Szegedy 2015).

Args:
    input (Tensor): the operand.
    weight (Tensor | None): the weights, or a factor per class or channel.
    bias (Tensor | None): what is added to each output channel.
    running_mean (Tensor | None): the average of means, which training moves.
    running_var (Tensor | None): the average of variances, which training moves.
    training (bool): whether statistics are those of the batch.
    momentum (float): how far a step moves the averages.
    eps (float): a small number that keeps quotients finite.
    cudnn_enabled (bool): has no effect: there is no such library.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.batch_norm(torch.tensor([[1.0], [3.0]]), None, None, None, None, True, 0.1, 0.0, False)
    tensor([[-1.],
            [ 1.]])""",
    "layer_norm": """Zero mean and unit variance over the last dimensions, then weight and bias (Ba et
al. 2016).

Args:
    input (Tensor): the operand.
    normalized_shape (Sequence[int]): the sizes of the last dimensions, over which statistics are taken.
    weight (Tensor | None): the weights, or a factor per class or channel.
    bias (Tensor | None): what is added to each output channel.
    eps (float): a small number that keeps quotients finite.
    cudnn_enable (bool): has no effect: there is no such library.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.layer_norm(torch.tensor([1.0, 3.0]), (2,), eps=0.0)
    tensor([-1.,  1.])""",
    "group_norm": """Zero mean and unit variance over groups of channels (Wu and He 2018).

Args:
    input (Tensor): the operand.
    num_groups (int): into how many groups the channels fall.
    weight (Tensor | None): the weights, or a factor per class or channel.
    bias (Tensor | None): what is added to each output channel.
    eps (float): a small number that keeps quotients finite.
    cudnn_enabled (bool): has no effect: there is no such library.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.group_norm(torch.tensor([[[1.0], [3.0]]]), 1, eps=0.0).flatten()
    tensor([-1.,  1.])""",
    "instance_norm": """Zero mean and unit variance per example and channel (Ulyanov et al. 2016).

Args:
    input (Tensor): the operand.
    weight (Tensor | None): the weights, or a factor per class or channel.
    bias (Tensor | None): what is added to each output channel.
    running_mean (Tensor | None): the average of means, which training moves.
    running_var (Tensor | None): the average of variances, which training moves.
    use_input_stats (bool): whether statistics are those of the input.
    momentum (float): how far a step moves the averages.
    eps (float): a small number that keeps quotients finite.
    cudnn_enabled (bool): has no effect: there is no such library.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.instance_norm(torch.tensor([[[1.0, 3.0]]]), None, None, None, None, True, 0.1, 0.0, False)
    tensor([[[-1.,  1.]]])""",
    "rms_norm": """Division by the root of the mean square over the last dimensions (Zhang and Sennrich
2019).

Args:
    input (Tensor): the operand.
    normalized_shape (Sequence[int]): the sizes of the last dimensions, over which statistics are taken.
    weight (Tensor | None): the weights, or a factor per class or channel.
    eps (float | None): a small number that keeps quotients finite.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.rms_norm(torch.tensor([3.0, 3.0]), (2,))
    tensor([1., 1.])""",
    "native_batch_norm": """`batch_norm` with the statistics beside the result.

Args:
    input (Tensor): the operand.
    weight (Tensor | None): the weights, or a factor per class or channel.
    bias (Tensor | None): what is added to each output channel.
    running_mean (Tensor | None): the average of means, which training moves.
    running_var (Tensor | None): the average of variances, which training moves.
    training (bool): whether statistics are those of the batch.
    momentum (float): how far a step moves the averages.
    eps (float): a small number that keeps quotients finite.

Example:
    >>> torch.native_batch_norm(torch.ones(2, 1), None, None, None, None, True, 0.1, 1e-5)[0].shape
    torch.Size([2, 1])""",
    "native_layer_norm": """`layer_norm` with mean and reciprocal deviation beside the result.

Args:
    input (Tensor): the operand.
    normalized_shape (Sequence[int]): the sizes of the last dimensions, over which statistics are taken.
    weight (Tensor | None): the weights, or a factor per class or channel.
    bias (Tensor | None): what is added to each output channel.
    eps (float): a small number that keeps quotients finite.

Example:
    >>> torch.native_layer_norm(torch.ones(2), (2,), None, None, 1e-5)[0].shape
    torch.Size([2])""",
    "native_group_norm": """`group_norm` with the statistics beside the result.

Args:
    input (Tensor): the operand.
    weight (Tensor | None): the weights, or a factor per class or channel.
    bias (Tensor | None): what is added to each output channel.
    N (int): the number of columns or points.
    C (int): the number of channels.
    HxW (int): the number of elements of a channel.
    group (int): the number of groups.
    eps (float): a small number that keeps quotients finite.

Example:
    >>> torch.native_group_norm(torch.ones(1, 2, 1), None, None, 1, 2, 1, 1, 1e-5)[0].shape
    torch.Size([1, 2, 1])""",
    "native_dropout": """`dropout` with the mask beside the result.

Args:
    input (Tensor): the operand.
    p (float): the probability, or the exponent of the norm.
    train (bool | None): whether values are dropped; otherwise the input is returned.

Example:
    >>> torch.native_dropout(torch.ones(2), 0.5, False)[0]
    tensor([1., 1.])""",
    "native_dropout_backward": """The gradient of `native_dropout`.

Args:
    grad_output (Tensor): the gradient of the result.
    mask (Tensor): true where something happens; broadcast with the input.
    scale (float): a factor.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.native_dropout_backward(torch.ones(2), torch.tensor([True, False]), 2.0)
    tensor([2., 0.])""",
    "embedding": """The rows of a table at integer indices. IndexError for one out of range.

Args:
    weight (Tensor): the weights, or a factor per class or channel.
    indices (Tensor): positions at which to split, or integer positions.
    padding_idx (int): the index whose row gets no gradient.
    scale_grad_by_freq (bool): whether gradients are divided by how often an index occurs.
    sparse (bool): whether the gradient is sparse.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.embedding(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1]))
    tensor([[3., 4.]])""",
    "binary_cross_entropy_with_logits": """-(t log s + (1 - t) log(1 - s)) with s = sigmoid(input), without overflow on the
way.

Args:
    input (Tensor): the operand.
    target (Tensor): what the input is compared with.
    weight (Tensor | None): the weights, or a factor per class or channel.
    pos_weight (Tensor | None): a factor for the positive examples of each class.
    reduction (int): 0 (none), 1 (mean) or 2 (sum) over the elements of the loss.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.binary_cross_entropy_with_logits(torch.tensor([0.0]), torch.tensor([1.0]))
    tensor(0.6931)""",
    "cosine_embedding_loss": """1 - cos for pairs of target 1, max(0, cos - margin) for those of target -1.

Args:
    input1 (Tensor): the first operand.
    input2 (Tensor): the second operand.
    target (Tensor): what the input is compared with.
    margin (float): the distance that counts as far enough.
    reduction (int): 0 (none), 1 (mean) or 2 (sum) over the elements of the loss.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.cosine_embedding_loss(torch.ones(1, 2), torch.ones(1, 2), torch.ones(1))
    tensor(0.)""",
    "hinge_embedding_loss": """x for target 1, max(0, margin - x) for target -1.

Args:
    input (Tensor): the operand.
    target (Tensor): what the input is compared with.
    margin (float): the distance that counts as far enough.
    reduction (int): 0 (none), 1 (mean) or 2 (sum) over the elements of the loss.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.hinge_embedding_loss(torch.tensor([0.25]), torch.tensor([-1.0]))
    tensor(0.7500)""",
    "kl_div": """target * (log target - input): the divergence of Kullback and Leibler, with
logarithms as input.

Args:
    input (Tensor): the operand.
    target (Tensor): what the input is compared with.
    reduction (int): 0 (none), 1 (mean) or 2 (sum) over the elements of the loss.
    log_target (bool): whether the target holds logarithms.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.kl_div(torch.tensor([0.0]), torch.tensor([1.0]))
    tensor(0.)""",
    "margin_ranking_loss": """max(0, -target * (input1 - input2) + margin).

Args:
    input1 (Tensor): the first operand.
    input2 (Tensor): the second operand.
    target (Tensor): what the input is compared with.
    margin (float): the distance that counts as far enough.
    reduction (int): 0 (none), 1 (mean) or 2 (sum) over the elements of the loss.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.margin_ranking_loss(torch.tensor([1.0]), torch.tensor([2.0]), torch.tensor([1.0]))
    tensor(1.)""",
    "triplet_margin_loss": """max(0, d(anchor, positive) - d(anchor, negative) + margin).

Args:
    anchor (Tensor): the examples.
    positive (Tensor): examples of the same kind.
    negative (Tensor): examples of other kinds.
    margin (float): the distance that counts as far enough.
    p (float): the probability, or the exponent of the norm.
    eps (float): a small number that keeps quotients finite.
    swap (bool): whether the distance from positive to negative counts where it is smaller.
    reduction (int): 0 (none), 1 (mean) or 2 (sum) over the elements of the loss.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.triplet_margin_loss(torch.zeros(1, 2), torch.zeros(1, 2), torch.ones(1, 2))
    tensor(0.)""",
    "poisson_nll_loss": """e^input - target * input: the negative logarithm of Poisson's likelihood.

Args:
    input (Tensor): the operand.
    target (Tensor): what the input is compared with.
    log_input (bool): whether the input is the logarithm of the rate.
    full (bool): whether the constant of Stirling's formula is added.
    eps (float): a small number that keeps quotients finite.
    reduction (int): 0 (none), 1 (mean) or 2 (sum) over the elements of the loss.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.poisson_nll_loss(torch.tensor([0.0]), torch.tensor([1.0]), True, False, 1e-8, 1)
    tensor(1.)""",
    "ctc_loss": """The loss of connectionist temporal classification (Graves et al. 2006).

Args:
    log_probs (Tensor): logarithms of probabilities, `(T, N, C)`.
    targets (Tensor): the labels.
    input_lengths (Sequence[int]): the length of each input.
    target_lengths (Sequence[int]): the length of each target.
    blank (int): the label that stands for nothing.
    reduction (int): 0 (none), 1 (mean) or 2 (sum) over the elements of the loss.
    zero_infinity (bool): whether infinite losses count as zero.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.ctc_loss(torch.zeros(2, 1, 2), torch.tensor([[1]]), [2], [1])
    tensor(-1.0986)""",
    "affine_grid_generator": """Grids of places in images or volumes, from affine maps.

Args:
    theta (Tensor): affine maps, `(N, 2, 3)` or `(N, 3, 4)`.
    size (Sequence[int]): the sizes of the result.
    align_corners (bool): whether -1 and 1, or first and last samples, are the centres of the corner elements.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.affine_grid_generator(torch.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]), (1, 1, 2, 2), True).shape
    torch.Size([1, 2, 2, 2])""",
    "grid_sampler": """The input read at places that a grid gives, -1 to 1 in each dimension.

Args:
    input (Tensor): the operand.
    grid (Tensor): for each output the place to read, x first, from -1 to 1.
    interpolation_mode (int): 0 (bilinear), 1 (nearest) or 2 (bicubic).
    padding_mode (int): what lies outside: 0 (zeros), 1 (the border) or 2 (reflections).
    align_corners (bool): whether -1 and 1, or first and last samples, are the centres of the corner elements.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.grid_sampler(torch.ones(1, 1, 2, 2), torch.zeros(1, 1, 1, 2), 0, 0, True).flatten()
    tensor([1.])""",
    "grid_sampler_2d": """The input read at places that a grid gives, -1 to 1 in each dimension.

Args:
    input (Tensor): the operand.
    grid (Tensor): for each output the place to read, x first, from -1 to 1.
    interpolation_mode (int): 0 (bilinear), 1 (nearest) or 2 (bicubic).
    padding_mode (int): what lies outside: 0 (zeros), 1 (the border) or 2 (reflections).
    align_corners (bool): whether -1 and 1, or first and last samples, are the centres of the corner elements.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.grid_sampler_2d(torch.ones(1, 1, 2, 2), torch.zeros(1, 1, 1, 2), 0, 0, True).flatten()
    tensor([1.])""",
    "grid_sampler_3d": """The volume read at places that a grid gives.

Args:
    input (Tensor): the operand.
    grid (Tensor): for each output the place to read, x first, from -1 to 1.
    interpolation_mode (int): 0 (bilinear), 1 (nearest) or 2 (bicubic).
    padding_mode (int): what lies outside: 0 (zeros), 1 (the border) or 2 (reflections).
    align_corners (bool): whether -1 and 1, or first and last samples, are the centres of the corner elements.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.grid_sampler_3d(torch.ones(1, 1, 2, 2, 2), torch.zeros(1, 1, 1, 1, 3), 0, 0, True).flatten()
    tensor([1.])""",
    "gru_cell": """One step of a recurrent network: the next state.

Args:
    input (Tensor): the operand.
    hx (Tensor): the state before the first step.
    w_ih (Tensor): weights for the input.
    w_hh (Tensor): weights for the state.
    b_ih (Tensor | None): bias for the input.
    b_hh (Tensor | None): bias for the state.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> weights = torch.nn.GRUCell(2, 2).parameters()
    >>> torch.gru_cell(torch.ones(1, 2), torch.zeros(1, 2), *weights).shape
    torch.Size([1, 2])""",
    "rnn_relu_cell": """One step of a recurrent network: the next state.

Args:
    input (Tensor): the operand.
    hx (Tensor): the state before the first step.
    w_ih (Tensor): weights for the input.
    w_hh (Tensor): weights for the state.
    b_ih (Tensor | None): bias for the input.
    b_hh (Tensor | None): bias for the state.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> weights = torch.nn.RNNCell(2, 2).parameters()
    >>> torch.rnn_relu_cell(torch.ones(1, 2), torch.zeros(1, 2), *weights).shape
    torch.Size([1, 2])""",
    "rnn_tanh_cell": """One step of a recurrent network: the next state.

Args:
    input (Tensor): the operand.
    hx (Tensor): the state before the first step.
    w_ih (Tensor): weights for the input.
    w_hh (Tensor): weights for the state.
    b_ih (Tensor | None): bias for the input.
    b_hh (Tensor | None): bias for the state.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> weights = torch.nn.RNNCell(2, 2).parameters()
    >>> torch.rnn_tanh_cell(torch.ones(1, 2), torch.zeros(1, 2), *weights).shape
    torch.Size([1, 2])""",
    "lstm_cell": """One step of an LSTM: the next output and cell state.

Args:
    input (Tensor): the operand.
    hx (Sequence[Tensor]): the state before the first step.
    w_ih (Tensor): weights for the input.
    w_hh (Tensor): weights for the state.
    b_ih (Tensor | None): bias for the input.
    b_hh (Tensor | None): bias for the state.

Example:
    >>> state = torch.zeros(1, 2), torch.zeros(1, 2)
    >>> torch.lstm_cell(torch.ones(1, 2), state, *torch.nn.LSTMCell(2, 2).parameters())[0].shape
    torch.Size([1, 2])""",
    "gru": """A recurrent network over sequences: all outputs and the last state.

Args:
    input (Tensor): the operand.
    hx (Tensor): the state before the first step.
    params (Sequence[Tensor]): the weights, layer by layer.
    has_biases (bool): whether weights come with biases.
    num_layers (int): the number of layers.
    dropout (float): the probability that a value between layers is dropped.
    train (bool): whether values are dropped; otherwise the input is returned.
    bidirectional (bool): whether a second pass goes backwards.
    batch_first (bool): whether the batch is the first dimension.

Example:
    >>> x, state, weights = torch.ones(3, 1, 2), torch.zeros(1, 1, 2), list(torch.nn.GRU(2, 2).parameters())
    >>> torch.gru(x, state, weights, True, 1, 0.0, False, False, False)[0].shape
    torch.Size([3, 1, 2])""",
    "rnn_relu": """A recurrent network over sequences: all outputs and the last state.

Args:
    input (Tensor): the operand.
    hx (Tensor): the state before the first step.
    params (Sequence[Tensor]): the weights, layer by layer.
    has_biases (bool): whether weights come with biases.
    num_layers (int): the number of layers.
    dropout (float): the probability that a value between layers is dropped.
    train (bool): whether values are dropped; otherwise the input is returned.
    bidirectional (bool): whether a second pass goes backwards.
    batch_first (bool): whether the batch is the first dimension.

Example:
    >>> x, state, weights = torch.ones(3, 1, 2), torch.zeros(1, 1, 2), list(torch.nn.RNN(2, 2).parameters())
    >>> torch.rnn_relu(x, state, weights, True, 1, 0.0, False, False, False)[0].shape
    torch.Size([3, 1, 2])""",
    "rnn_tanh": """A recurrent network over sequences: all outputs and the last state.

Args:
    input (Tensor): the operand.
    hx (Tensor): the state before the first step.
    params (Sequence[Tensor]): the weights, layer by layer.
    has_biases (bool): whether weights come with biases.
    num_layers (int): the number of layers.
    dropout (float): the probability that a value between layers is dropped.
    train (bool): whether values are dropped; otherwise the input is returned.
    bidirectional (bool): whether a second pass goes backwards.
    batch_first (bool): whether the batch is the first dimension.

Example:
    >>> x, state, weights = torch.ones(3, 1, 2), torch.zeros(1, 1, 2), list(torch.nn.RNN(2, 2).parameters())
    >>> torch.rnn_tanh(x, state, weights, True, 1, 0.0, False, False, False)[0].shape
    torch.Size([3, 1, 2])""",
    "lstm": """An LSTM over sequences: all outputs, the last output and the last cell state.

Args:
    input (Tensor): the operand.
    hx (Sequence[Tensor]): the state before the first step.
    params (Sequence[Tensor]): the weights, layer by layer.
    has_biases (bool): whether weights come with biases.
    num_layers (int): the number of layers.
    dropout (float): the probability that a value between layers is dropped.
    train (bool): whether values are dropped; otherwise the input is returned.
    bidirectional (bool): whether a second pass goes backwards.
    batch_first (bool): whether the batch is the first dimension.

Example:
    >>> x, state, weights = torch.ones(3, 1, 2), torch.zeros(1, 1, 2), list(torch.nn.LSTM(2, 2).parameters())
    >>> torch.lstm(x, (state, state), weights, True, 1, 0.0, False, False, False)[0].shape
    torch.Size([3, 1, 2])""",
    "stft": """Fourier transforms of overlapping frames of a signal: (frequencies, frames).

Args:
    input (Tensor): the operand.
    n_fft (int): the length of a frame's transform.
    hop_length (int | None): the distance between frames: a quarter of `n_fft` by default.
    win_length (int | None): the length of the window: `n_fft` by default.
    window (Tensor | None): factors for the samples of a frame; ones by default.
    center (bool): whether frame t is centred at sample t * hop_length.
    pad_mode (str): how the signal goes on beyond its ends.
    normalized (bool): whether results are divided by the square root of the frame's length.
    onesided (bool | None): whether only frequencies from zero up are there.
    return_complex (bool | None): whether the result is complex.
    align_to_window (bool | None): begin the first frame where the window does.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.stft(torch.ones(8), 4, window=torch.ones(4), return_complex=True).shape
    torch.Size([3, 9])""",
    "istft": """The signal whose `stft` is given, by the least squares of overlapping frames.

Args:
    input (Tensor): the operand.
    n_fft (int): the length of a frame's transform.
    hop_length (int | None): the distance between frames: a quarter of `n_fft` by default.
    win_length (int | None): the length of the window: `n_fft` by default.
    window (Tensor | None): factors for the samples of a frame; ones by default.
    center (bool): whether frame t is centred at sample t * hop_length.
    normalized (bool): whether results are divided by the square root of the frame's length.
    onesided (bool | None): whether only frequencies from zero up are there.
    length (int | None): the number of samples of the result.
    return_complex (bool): whether the result is complex.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.istft(torch.stft(torch.ones(8), 4, window=torch.ones(4), return_complex=True), 4, window=torch.ones(4))
    tensor([1., 1., 1., 1., 1., 1., 1., 1.])""",
    "sym_size": """A size, which is symbolic while a program is captured.

Args:
    input (Tensor): the operand.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.

Example:
    >>> torch.sym_size(torch.ones(3), 0)
    3""",
    "sym_stride": """A stride, which is symbolic while a program is captured.

Args:
    input (Tensor): the operand.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.

Example:
    >>> torch.sym_stride(torch.ones(3), 0)
    1""",
    "sym_numel": """The number of elements, which is symbolic while a program is captured.

Args:
    input (Tensor): the operand.

Example:
    >>> torch.sym_numel(torch.ones(3))
    3""",
}
