"""Batch and instance normalisation, by number of dimensions."""

from __future__ import annotations

from typing import Any

from rushlight.core.dtype import int64
from rushlight.core.lazy_module import lazy_names
from rushlight.core.tensor import Tensor
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.creation import new_parameter, new_tensor
from rushlight.nn.modules.module import Module


class _NormBase(Module):
    """The base of normalisations: weight and bias per channel, running statistics, and the number of batches seen."""

    _version = 2

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device=None,
        dtype=None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        shape = [num_features]
        self.register_parameter("weight", new_parameter(shape, device, dtype) if affine else None)
        self.register_parameter("bias", new_parameter(shape, device, dtype) if affine and bias else None)
        tracked = track_running_stats
        self.register_buffer("running_mean", new_tensor(shape, device, dtype, 0.0) if tracked else None)
        self.register_buffer("running_var", new_tensor(shape, device, dtype, 1.0) if tracked else None)
        self.register_buffer("num_batches_tracked", new_tensor([], device, int64, 0) if tracked else None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Reset to mean 0, variance 1, no batches."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Reset weight to 1, bias to 0, and the running statistics."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        raise NotImplementedError

    def extra_repr(self) -> str:
        text = f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}"
        return text + f", bias={self.bias is not None}, track_running_stats={self.track_running_stats}"

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict, *args: Any) -> None:
        # Version 2 of the layer added the count, so older files lack it.
        version = local_metadata.get("version")
        key = prefix + "num_batches_tracked"
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            own = self.num_batches_tracked
            state_dict[key] = own if own is not None and not own.is_meta else new_tensor([], None, int64, 0)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)


class _BatchNorm(_NormBase):
    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        training = self.training or (self.running_mean is None and self.running_var is None)
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                momentum = 1.0 / float(self.num_batches_tracked)
        keeps = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if keeps else None,
            self.running_var if keeps else None,
            self.weight,
            self.bias,
            training,
            momentum,
            self.eps,
        )


class BatchNorm1d(_BatchNorm):
    """Normalises the channels of (N, C) or (N, C, L): by the batch in training, by running statistics otherwise.

    Args:
        num_features (int): the number of channels.
        eps (float): added to the variance.
        momentum (float | None): the weight of a batch in the running averages; None averages all batches equally.
        affine (bool): whether the layer has a weight and a bias per channel.
        track_running_stats (bool): whether to keep running averages for evaluation.
        device: the device of the parameters.
        dtype: the dtype of the parameters.
        bias (bool): whether the layer has a learned bias.

    Example:
        >>> torch.nn.BatchNorm1d(1)(torch.ones(1, 1, 4)).shape
        torch.Size([1, 1, 4])
    """

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in (2, 3):
            raise ValueError(f"expected 2D or 3D input (got {input.dim()}D input)")


class BatchNorm2d(_BatchNorm):
    """Normalises the channels of (N, C, H, W): by the batch in training, by running statistics otherwise.

    Args:
        num_features (int): the number of channels.
        eps (float): added to the variance.
        momentum (float | None): the weight of a batch in the running averages; None averages all batches equally.
        affine (bool): whether the layer has a weight and a bias per channel.
        track_running_stats (bool): whether to keep running averages for evaluation.
        device: the device of the parameters.
        dtype: the dtype of the parameters.
        bias (bool): whether the layer has a learned bias.

    Example:
        >>> torch.nn.BatchNorm2d(1)(torch.ones(1, 1, 4, 4)).shape
        torch.Size([1, 1, 4, 4])
    """

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != 4:
            raise ValueError(f"expected 4D input (got {input.dim()}D input)")


class BatchNorm3d(_BatchNorm):
    """Normalises the channels of (N, C, D, H, W): by the batch in training, by running statistics otherwise.

    Args:
        num_features (int): the number of channels.
        eps (float): added to the variance.
        momentum (float | None): the weight of a batch in the running averages; None averages all batches equally.
        affine (bool): whether the layer has a weight and a bias per channel.
        track_running_stats (bool): whether to keep running averages for evaluation.
        device: the device of the parameters.
        dtype: the dtype of the parameters.
        bias (bool): whether the layer has a learned bias.

    Example:
        >>> torch.nn.BatchNorm3d(1)(torch.ones(1, 1, 4, 4, 4)).shape
        torch.Size([1, 1, 4, 4, 4])
    """

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != 5:
            raise ValueError(f"expected 5D input (got {input.dim()}D input)")


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation across processes, which torch supports only on GPUs.

    Here it works in evaluation mode, and raises ValueError in training mode.

    Args:
        num_features (int): the number of channels.
        eps (float): added to the variance.
        momentum (float | None): the weight of a batch in the running averages; None averages all batches equally.
        affine (bool): whether the layer has a weight and a bias per channel.
        track_running_stats (bool): whether to keep running averages for evaluation.
        process_group (Any): unused: there is one process.
        device: the device of the parameters.
        dtype: the dtype of the parameters.
        bias (bool): whether the layer has a learned bias.

    Example:
        >>> torch.nn.SyncBatchNorm(2).eval()(torch.ones(1, 2, 3)).shape
        torch.Size([1, 2, 3])
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device=None,
        dtype=None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")
        if self.training:
            raise ValueError(
                "SyncBatchNorm expected input tensor to be on a GPU or the like, but got it on the CPU: "
                "train with BatchNorm1d, BatchNorm2d or BatchNorm3d, or call eval()"
            )

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Replace every batch normalisation in `module` by a SyncBatchNorm with its parameters and buffers."""
        converted = module
        if isinstance(module, _BatchNorm) and not isinstance(module, cls):
            options = (module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats)
            converted = cls(*options, process_group, bias=module.bias is not None)
            converted._parameters.update(module._parameters)
            converted._buffers.update(module._buffers)
            converted.training = module.training
        for name, child in module.named_children():
            converted.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return converted


class _InstanceNorm(_NormBase):
    dims: int

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device=None,
        dtype=None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in (self.dims + 1, self.dims + 2):
            raise ValueError(f"expected {self.dims + 1}D or {self.dims + 2}D input (got {input.dim()}D input)")

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        feature_dim = input.dim() - self.dims - 1
        if input.shape[feature_dim] != self.num_features and self.affine:
            raise ValueError(
                f"expected input's size at dim={feature_dim} to match num_features ({self.num_features}), "
                f"but got: {input.shape[feature_dim]}."
            )
        if feature_dim == 0:
            return self._normalize(input.unsqueeze(0)).squeeze(0)
        return self._normalize(input)

    def _normalize(self, input: Tensor) -> Tensor:
        return F.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )


class InstanceNorm1d(_InstanceNorm):
    """Normalises each channel of each sample of (N, C, L) or (C, L).

    Args:
        num_features (int): the number of channels.
        eps (float): added to the variance.
        momentum (float): the weight of a batch in the running averages.
        affine (bool): whether the layer has a weight and a bias per channel.
        track_running_stats (bool): whether to keep running averages for evaluation.
        device: the device of the parameters.
        dtype: the dtype of the parameters.
        bias (bool): whether the layer has a learned bias.

    Example:
        >>> torch.nn.InstanceNorm1d(1)(torch.ones(1, 1, 4)).shape
        torch.Size([1, 1, 4])
    """

    dims = 1


class InstanceNorm2d(_InstanceNorm):
    """Normalises each channel of each sample of (N, C, H, W) or (C, H, W).

    Args:
        num_features (int): the number of channels.
        eps (float): added to the variance.
        momentum (float): the weight of a batch in the running averages.
        affine (bool): whether the layer has a weight and a bias per channel.
        track_running_stats (bool): whether to keep running averages for evaluation.
        device: the device of the parameters.
        dtype: the dtype of the parameters.
        bias (bool): whether the layer has a learned bias.

    Example:
        >>> torch.nn.InstanceNorm2d(1)(torch.ones(1, 1, 4, 4)).shape
        torch.Size([1, 1, 4, 4])
    """

    dims = 2


class InstanceNorm3d(_InstanceNorm):
    """Normalises each channel of each sample of (N, C, D, H, W) or (C, D, H, W).

    Args:
        num_features (int): the number of channels.
        eps (float): added to the variance.
        momentum (float): the weight of a batch in the running averages.
        affine (bool): whether the layer has a weight and a bias per channel.
        track_running_stats (bool): whether to keep running averages for evaluation.
        device: the device of the parameters.
        dtype: the dtype of the parameters.
        bias (bool): whether the layer has a learned bias.

    Example:
        >>> torch.nn.InstanceNorm3d(1)(torch.ones(1, 1, 4, 4, 4)).shape
        torch.Size([1, 1, 4, 4, 4])
    """

    dims = 3


# PyTorch's module of this name also has these classes; they are imported lazily.
__getattr__, __dir__ = lazy_names(globals(), {
    "rushlight.nn.modules.lazy_layers": ("LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d"),
})  # fmt: skip
