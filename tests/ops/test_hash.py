"""hash_tensor: the exclusive or of elements as 64 bits."""

import numpy as np
import pytest

import rushlight as torch


@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16", "float64", "int8", "int64", "uint8", "bool"])
def test_hashes(kind):
    x = torch.tensor([[1, 0, 3], [2, 5, 1]]).to(getattr(torch, kind))
    wide = x.double().numpy().view(np.uint64) if x.is_floating_point() else x.long().numpy().view(np.uint64)
    assert torch.hash_tensor(x).item() == np.bitwise_xor.reduce(wide, axis=None)
    assert torch.hash_tensor(x, 1).tolist() == np.bitwise_xor.reduce(wide, axis=1).tolist()
    assert torch.hash_tensor(x, (0, 1), keepdim=True).shape == (1, 1) and torch.hash_tensor(x).dtype is torch.uint64


def test_what_has_no_hash():
    assert torch.hash_tensor(torch.empty(0, 2), dim=1).tolist() == []
    with pytest.raises(IndexError, match="Expected reduction dim 0 to have non-zero size"):
        torch.hash_tensor(torch.empty(0, 2), dim=0)
    with pytest.raises(RuntimeError, match="Expected reduction dim"):
        torch.hash_tensor(torch.empty(0))
    with pytest.raises(RuntimeError, match="Unknown hash_tensor mode: 1"):
        torch.hash_tensor(torch.ones(2), mode=1)
    with pytest.raises(RuntimeError, match="not implemented for"):
        torch.hash_tensor(torch.tensor([1j]))


def test_compiled_and_mapped():
    x = torch.arange(6).view(2, 3)
    assert torch.compile(torch.hash_tensor)(x) == torch.hash_tensor(x)
    assert torch.vmap(torch.hash_tensor)(x).tolist() == torch.hash_tensor(x, 1).tolist()
