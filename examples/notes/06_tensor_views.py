"""Note 2, "Tensor": tensors over storages. `as_strided` and `expand` make views, `repeat` copies; writes are seen by all views."""

import torch

base = torch.arange(6.0)
view = torch.as_strided(base, (2, 2), (2, 1), 1)
print(view, view.stride(), view.storage_offset())
print("as_strided shares the storage:", view.untyped_storage().data_ptr() == base.untyped_storage().data_ptr())

overlapping = base.as_strided((3, 3), (1, 1))  # more than one element refers to a memory location
overlapping[0, 1] = -1.0
print(overlapping)

row = torch.ones(1, 3)
print("expand:", row.expand(4, 3).data_ptr() == row.data_ptr(), row.expand(4, 3).stride())
print("repeat:", row.repeat(4, 1).data_ptr() == row.data_ptr(), row.repeat(4, 1).stride())

x = torch.zeros(4, 4, 8)
makers = {
    "x[0, 2:, 1:7:2]": x[0, 2:, 1:7:2], "detach": x.detach(), "diagonal": x.diagonal(), "movedim": x.movedim(0, 2),
    "narrow": x.narrow(2, 1, 3), "permute": x.permute(2, 0, 1), "select": x.select(0, 1), "transpose": x.transpose(0, 1),
    "unfold": x.unfold(2, 2, 2), "unsqueeze": x.unsqueeze(0), "view": x.view(16, 8), "unbind": x.unbind()[1],
    "split": x.split(2)[1], "chunk": x.chunk(2, 2)[1], "unflatten": x.unflatten(2, (2, 4)), "swapaxes": x.swapaxes(0, 1),
}  # fmt: skip
memory = x.untyped_storage().data_ptr()
print("views:", [name for name, made in makers.items() if made.untyped_storage().data_ptr() == memory])
x.permute(2, 0, 1)[3, 1, 2] = 5.0
print("a write through a view:", x[1, 2, 3].item())
print("reshape:", x.reshape(-1)._is_view(), x.permute(2, 0, 1).reshape(-1)._is_view())  # a view, or a copy where there is none
