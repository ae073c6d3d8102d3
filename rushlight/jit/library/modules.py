"""Methods of the library's modules in TorchScript's language, where their own source does not compile."""

from __future__ import annotations

from collections.abc import Callable
from typing import List, Optional, Tuple  # noqa: UP035 (scripted code)

from rushlight.core.tensor import Tensor
from rushlight.jit.library import recurrent
from rushlight.jit.library.convolution import both_sides, missing_padding, same_sides
from rushlight.nn import functional as F
from rushlight.nn.modules import attention, batchnorm, container, conv, pooling, sequence_loss


def conv_padded(self, input: Tensor) -> Tensor:
    """Return the padded input, for the padding modes that the operator lacks."""
    if isinstance(self.padding, str):
        if self.padding == "valid":
            return input
        return F.pad(input, same_sides(self.kernel_size, self.dilation), mode=self.padding_mode)
    else:
        return F.pad(input, both_sides(self.padding), mode=self.padding_mode)


def conv1d_apply(self, input: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
    if self.padding_mode != "zeros":
        return F.conv1d(self._padded(input), weight, bias, self.stride, 0, self.dilation, self.groups)
    return F.conv1d(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)


def conv2d_apply(self, input: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
    if self.padding_mode != "zeros":
        return F.conv2d(self._padded(input), weight, bias, self.stride, 0, self.dilation, self.groups)
    return F.conv2d(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)


def conv3d_apply(self, input: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
    if self.padding_mode != "zeros":
        return F.conv3d(self._padded(input), weight, bias, self.stride, 0, self.dilation, self.groups)
    return F.conv3d(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)


def transposed_extra(self, input: Tensor, output_size: Optional[List[int]]) -> List[int]:
    """Return the output padding."""
    if output_size is None:
        extra: List[int] = self.output_padding
        return extra
    return missing_padding(input.size(), output_size, self.stride, self.padding, self.kernel_size, self.dilation)


def conv_transpose1d_forward(self, input: Tensor, output_size: Optional[List[int]] = None) -> Tensor:
    extra = self._extra(input, output_size)
    return F.conv_transpose1d(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation)


def conv_transpose2d_forward(self, input: Tensor, output_size: Optional[List[int]] = None) -> Tensor:
    extra = self._extra(input, output_size)
    return F.conv_transpose2d(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation)


def conv_transpose3d_forward(self, input: Tensor, output_size: Optional[List[int]] = None) -> Tensor:
    extra = self._extra(input, output_size)
    return F.conv_transpose3d(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation)


def batch_norm_forward(self, input: Tensor) -> Tensor:
    self._check_input_dim(input)
    momentum = 0.0 if self.momentum is None else self.momentum
    if self.training and self.track_running_stats:
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                momentum = 1.0 / float(self.num_batches_tracked)
    training = self.training or (self.running_mean is None and self.running_var is None)
    keeps = not self.training or self.track_running_stats
    mean = self.running_mean if keeps else None
    variance = self.running_var if keeps else None
    return F.batch_norm(input, mean, variance, self.weight, self.bias, training, momentum, self.eps)


def max_pool1d_forward(self, input: Tensor):
    if self.return_indices:
        return F.max_pool1d_with_indices(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)
    else:
        return F.max_pool1d(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)


def max_pool2d_forward(self, input: Tensor):
    if self.return_indices:
        return F.max_pool2d_with_indices(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)
    else:
        return F.max_pool2d(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)


def max_pool3d_forward(self, input: Tensor):
    if self.return_indices:
        return F.max_pool3d_with_indices(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)
    else:
        return F.max_pool3d(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)


def max_unpool1d_forward(self, input: Tensor, indices: Tensor, output_size: Optional[List[int]] = None) -> Tensor:
    return F.max_unpool1d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


def max_unpool2d_forward(self, input: Tensor, indices: Tensor, output_size: Optional[List[int]] = None) -> Tensor:
    return F.max_unpool2d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


def max_unpool3d_forward(self, input: Tensor, indices: Tensor, output_size: Optional[List[int]] = None) -> Tensor:
    return F.max_unpool3d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


def avg_pool2d_forward(self, input: Tensor) -> Tensor:
    return F.avg_pool2d(
        input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad, self.divisor_override
    )


def avg_pool3d_forward(self, input: Tensor) -> Tensor:
    return F.avg_pool3d(
        input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad, self.divisor_override
    )


def lp_pool1d_forward(self, input: Tensor) -> Tensor:
    return F.lp_pool1d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


def lp_pool2d_forward(self, input: Tensor) -> Tensor:
    return F.lp_pool2d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


def lp_pool3d_forward(self, input: Tensor) -> Tensor:
    return F.lp_pool3d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


def multihead_attention_forward(
    self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Optional[Tensor] = None, need_weights: bool = True,
    attn_mask: Optional[Tensor] = None, average_attn_weights: bool = True, is_causal: bool = False,
) -> Tuple[Tensor, Optional[Tensor]]:
    swap = self.batch_first and query.dim() == 3
    if swap:
        same_value, same_key = value is key, key is query
        query = query.transpose(0, 1)
        key = query if same_key else key.transpose(0, 1)
        value = key if same_value else value.transpose(0, 1)
    output, weights = F.multi_head_attention_forward(
        query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k, self.bias_v,
        self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias, self.training, key_padding_mask,
        need_weights, attn_mask, not self._qkv_same_embed_dim, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight,
        average_attn_weights=average_attn_weights, is_causal=is_causal,
    )
    return output.transpose(0, 1) if swap else output, weights


def sequential_forward(self, input):
    for module in self:
        input = module(input)
    return input


def ctc_loss_forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor) -> Tensor:
    return F.ctc_loss(
        log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
    )


METHODS: dict[type, dict[str, Callable]] = {
    conv._Convolution: {"_padded": conv_padded},
    conv.Conv1d: {"_conv_forward": conv1d_apply}, conv.Conv2d: {"_conv_forward": conv2d_apply},
    conv.Conv3d: {"_conv_forward": conv3d_apply},
    conv._TransposedConvolution: {"_extra": transposed_extra},
    conv.ConvTranspose1d: {"forward": conv_transpose1d_forward}, conv.ConvTranspose2d: {"forward": conv_transpose2d_forward},
    conv.ConvTranspose3d: {"forward": conv_transpose3d_forward},
    batchnorm._BatchNorm: {"forward": batch_norm_forward},
    pooling.MaxPool1d: {"forward": max_pool1d_forward}, pooling.MaxPool2d: {"forward": max_pool2d_forward},
    pooling.MaxPool3d: {"forward": max_pool3d_forward},
    pooling.MaxUnpool1d: {"forward": max_unpool1d_forward}, pooling.MaxUnpool2d: {"forward": max_unpool2d_forward},
    pooling.MaxUnpool3d: {"forward": max_unpool3d_forward},
    pooling.AvgPool2d: {"forward": avg_pool2d_forward}, pooling.AvgPool3d: {"forward": avg_pool3d_forward},
    pooling.LPPool1d: {"forward": lp_pool1d_forward}, pooling.LPPool2d: {"forward": lp_pool2d_forward},
    pooling.LPPool3d: {"forward": lp_pool3d_forward},
    attention.MultiheadAttention: {"forward": multihead_attention_forward},
    container.Sequential: {"forward": sequential_forward},
    sequence_loss.CTCLoss: {"forward": ctc_loss_forward},
    **recurrent.METHODS,
}  # fmt: skip
