"""Docstrings of operators of `torch.fft`, by name."""

DOCSTRINGS: dict[str, str] = {
    "fft_fft": """The discrete Fourier transform along a dimension: X[k] = sum of x[j] e^(-2 pi i j k
/ n).

Args:
    input (Tensor): the operand.
    n (int | None): the order, or the number of points.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    norm (str | None): how results are scaled: "backward" (the default), "ortho" or "forward".
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.fft.fft(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([10.-0.j, -2.+2.j, -2.-0.j, -2.-2.j])""",
    "fft_ifft": """The inverse of `fft`.

Args:
    input (Tensor): the operand.
    n (int | None): the order, or the number of points.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    norm (str | None): how results are scaled: "backward" (the default), "ortho" or "forward".
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.fft.ifft(torch.fft.fft(torch.tensor([1.0, 2.0, 3.0, 4.0]))).real
    tensor([1., 2., 3., 4.])""",
    "fft_rfft": """The first n / 2 + 1 values of the transform of a real signal; the others are their
conjugates.

Args:
    input (Tensor): the operand.
    n (int | None): the order, or the number of points.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    norm (str | None): how results are scaled: "backward" (the default), "ortho" or "forward".
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.fft.rfft(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([10.+0.j, -2.+2.j, -2.+0.j])""",
    "fft_irfft": """The inverse of `rfft`: a real signal of n samples.

Args:
    input (Tensor): the operand.
    n (int | None): the order, or the number of points.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    norm (str | None): how results are scaled: "backward" (the default), "ortho" or "forward".
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.fft.irfft(torch.fft.rfft(torch.tensor([1.0, 2.0, 3.0, 4.0])))
    tensor([1., 2., 3., 4.])""",
    "fft_hfft": """The real transform of a signal that is Hermitian, of which one half is given.

Args:
    input (Tensor): the operand.
    n (int | None): the order, or the number of points.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    norm (str | None): how results are scaled: "backward" (the default), "ortho" or "forward".
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.fft.hfft(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([15., -4.,  0., -1.,  0., -4.])""",
    "fft_ihfft": """The inverse of `hfft`.

Args:
    input (Tensor): the operand.
    n (int | None): the order, or the number of points.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    norm (str | None): how results are scaled: "backward" (the default), "ortho" or "forward".
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.fft.ihfft(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([ 2.5000-0.0000j, -0.5000-0.5000j, -0.5000-0.0000j])""",
    "fft_fft2": """The discrete Fourier transform along two dimensions.

Args:
    input (Tensor): the operand.
    s (int | Sequence[int] | None): the length of each transformed dimension: the input is cut or filled with
        zeros.
    dim (int | Sequence[int]): the dimension, or dimensions, along which to work; negative ones count from the
        last.
    norm (str | None): how results are scaled: "backward" (the default), "ortho" or "forward".
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.fft.fft2(torch.ones(2, 2)).shape
    torch.Size([2, 2])""",
    "fft_fftn": """The discrete Fourier transform along several dimensions.

Args:
    input (Tensor): the operand.
    s (int | Sequence[int] | None): the length of each transformed dimension: the input is cut or filled with
        zeros.
    dim (int | Sequence[int] | None): the dimension, or dimensions, along which to work; negative ones count
        from the last.
    norm (str | None): how results are scaled: "backward" (the default), "ortho" or "forward".
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.fft.fftn(torch.ones(2, 2)).shape
    torch.Size([2, 2])""",
    "fft_ifft2": """The discrete Fourier transform along two dimensions, inverse.

Args:
    input (Tensor): the operand.
    s (int | Sequence[int] | None): the length of each transformed dimension: the input is cut or filled with
        zeros.
    dim (int | Sequence[int]): the dimension, or dimensions, along which to work; negative ones count from the
        last.
    norm (str | None): how results are scaled: "backward" (the default), "ortho" or "forward".
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.fft.ifft2(torch.ones(2, 2)).shape
    torch.Size([2, 2])""",
    "fft_ifftn": """The discrete Fourier transform along several dimensions, inverse.

Args:
    input (Tensor): the operand.
    s (int | Sequence[int] | None): the length of each transformed dimension: the input is cut or filled with
        zeros.
    dim (int | Sequence[int] | None): the dimension, or dimensions, along which to work; negative ones count
        from the last.
    norm (str | None): how results are scaled: "backward" (the default), "ortho" or "forward".
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.fft.ifftn(torch.ones(2, 2)).shape
    torch.Size([2, 2])""",
    "fft_rfft2": """The discrete Fourier transform along two dimensions of a real signal.

Args:
    input (Tensor): the operand.
    s (int | Sequence[int] | None): the length of each transformed dimension: the input is cut or filled with
        zeros.
    dim (int | Sequence[int]): the dimension, or dimensions, along which to work; negative ones count from the
        last.
    norm (str | None): how results are scaled: "backward" (the default), "ortho" or "forward".
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.fft.rfft2(torch.ones(2, 2)).shape
    torch.Size([2, 2])""",
    "fft_rfftn": """The discrete Fourier transform along several dimensions of a real signal.

Args:
    input (Tensor): the operand.
    s (int | Sequence[int] | None): the length of each transformed dimension: the input is cut or filled with
        zeros.
    dim (int | Sequence[int] | None): the dimension, or dimensions, along which to work; negative ones count
        from the last.
    norm (str | None): how results are scaled: "backward" (the default), "ortho" or "forward".
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.fft.rfftn(torch.ones(2, 2)).shape
    torch.Size([2, 2])""",
    "fft_irfft2": """The discrete Fourier transform along two dimensions, inverse, to a real signal.

Args:
    input (Tensor): the operand.
    s (int | Sequence[int] | None): the length of each transformed dimension: the input is cut or filled with
        zeros.
    dim (int | Sequence[int]): the dimension, or dimensions, along which to work; negative ones count from the
        last.
    norm (str | None): how results are scaled: "backward" (the default), "ortho" or "forward".
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.fft.irfft2(torch.ones(2, 2)).shape
    torch.Size([2, 2])""",
    "fft_irfftn": """The discrete Fourier transform along several dimensions, inverse, to a real signal.

Args:
    input (Tensor): the operand.
    s (int | Sequence[int] | None): the length of each transformed dimension: the input is cut or filled with
        zeros.
    dim (int | Sequence[int] | None): the dimension, or dimensions, along which to work; negative ones count
        from the last.
    norm (str | None): how results are scaled: "backward" (the default), "ortho" or "forward".
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.fft.irfftn(torch.ones(2, 2)).shape
    torch.Size([2, 2])""",
    "fft_hfft2": """The discrete Fourier transform along two dimensions of a Hermitian signal.

Args:
    input (Tensor): the operand.
    s (int | Sequence[int] | None): the length of each transformed dimension: the input is cut or filled with
        zeros.
    dim (int | Sequence[int]): the dimension, or dimensions, along which to work; negative ones count from the
        last.
    norm (str | None): how results are scaled: "backward" (the default), "ortho" or "forward".
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.fft.hfft2(torch.ones(2, 2)).shape
    torch.Size([2, 2])""",
    "fft_hfftn": """The discrete Fourier transform along several dimensions of a Hermitian signal.

Args:
    input (Tensor): the operand.
    s (int | Sequence[int] | None): the length of each transformed dimension: the input is cut or filled with
        zeros.
    dim (int | Sequence[int] | None): the dimension, or dimensions, along which to work; negative ones count
        from the last.
    norm (str | None): how results are scaled: "backward" (the default), "ortho" or "forward".
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.fft.hfftn(torch.ones(2, 2)).shape
    torch.Size([2, 2])""",
    "fft_ihfft2": """The discrete Fourier transform along two dimensions, the inverse of `hfft2`.

Args:
    input (Tensor): the operand.
    s (int | Sequence[int] | None): the length of each transformed dimension: the input is cut or filled with
        zeros.
    dim (int | Sequence[int]): the dimension, or dimensions, along which to work; negative ones count from the
        last.
    norm (str | None): how results are scaled: "backward" (the default), "ortho" or "forward".
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.fft.ihfft2(torch.ones(2, 2)).shape
    torch.Size([2, 2])""",
    "fft_ihfftn": """The discrete Fourier transform along several dimensions, the inverse of `hfftn`.

Args:
    input (Tensor): the operand.
    s (int | Sequence[int] | None): the length of each transformed dimension: the input is cut or filled with
        zeros.
    dim (int | Sequence[int] | None): the dimension, or dimensions, along which to work; negative ones count
        from the last.
    norm (str | None): how results are scaled: "backward" (the default), "ortho" or "forward".
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.fft.ihfftn(torch.ones(2, 2)).shape
    torch.Size([2, 2])""",
    "fft_fftfreq": """The frequencies of `fft`'s values, in cycles per unit of d.

Args:
    n (int): the order, or the number of points.
    d (float): the distance between samples, in seconds for instance.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    layout (layout | None): the layout of the result: `torch.strided` by default.
    device (device | None): where the result lies: the default device if not given.
    pin_memory (bool | None): must be false: there is no memory to lock for another device.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])""",
    "fft_rfftfreq": """The frequencies of `rfft`'s values.

Args:
    n (int): the order, or the number of points.
    d (float): the distance between samples, in seconds for instance.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    layout (layout | None): the layout of the result: `torch.strided` by default.
    device (device | None): where the result lies: the default device if not given.
    pin_memory (bool | None): must be false: there is no memory to lock for another device.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])""",
    "fft_fftshift": """The zero frequency moved to the middle.

Args:
    input (Tensor): the operand.
    dim (int | Sequence[int] | None): the dimension, or dimensions, along which to work; negative ones count
        from the last.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])""",
    "fft_ifftshift": """The inverse of `fftshift`.

Args:
    input (Tensor): the operand.
    dim (int | Sequence[int] | None): the dimension, or dimensions, along which to work; negative ones count
        from the last.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.fft.fftshift(torch.fft.fftfreq(4))
    tensor([-0.5000, -0.2500,  0.0000,  0.2500])""",
}
