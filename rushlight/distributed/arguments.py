"""What collectives check of their arguments."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.core.tensor import Tensor


def check_tensor(value: object, name: str) -> None:
    """Raise TypeError unless an argument is a tensor, and RuntimeError unless it is dense, on the CPU or a GPU."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor.\n"
            f"             Instead got {type(value)} instead."
        )
    if value.device.type not in ("cpu", "cuda") or value.is_sparse:
        raise RuntimeError(f"collectives take dense tensors on the CPU or a GPU; `{name}` is {value.layout} on {value.device}")


def check_tensors(values: object, name: str) -> None:
    """Raise TypeError unless an argument is a list of tensors."""
    if not isinstance(values, list | tuple):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n"
            f"             Instead got {type(values)} instead."
        )
    for value in values:
        check_tensor(value, name)


def check_same(tensors: Sequence[Tensor], like: Tensor, caller: str, name: str) -> None:
    """Raise ValueError unless tensors have the dtype of another, and as many elements."""
    for index, tensor in enumerate(tensors):
        if tensor.dtype is not like.dtype or tensor.numel() != like.numel():
            raise ValueError(
                f"{caller}: {name}[{index}] is {tensor.dtype} of shape {list(tensor.shape)}, expected {like.dtype} with "
                f"as many elements as the tensor of shape {list(like.shape)}"
            )


def check_count(tensors: Sequence[Tensor], count: int, caller: str, name: str) -> None:
    """Raise ValueError unless there is a tensor for each rank."""
    if len(tensors) != count:
        raise ValueError(f"{caller}: {name} has {len(tensors)} tensors, expected one for each of the {count} ranks")
