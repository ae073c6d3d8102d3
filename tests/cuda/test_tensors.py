"""Device tensors: copies, views, printing, and errors."""

import copy
import pickle

import pytest

import rushlight as torch

NUMPY = "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu\\(\\) to copy the tensor to host memory first."
SAME = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"


def test_devices():
    assert torch.cuda.is_available() and torch.cuda.device_count() >= 1
    assert torch.empty(1, device="cuda").device == torch.device("cuda", torch.cuda.current_device())
    assert torch.device(0) == torch.device("cuda:0")
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.empty(1, device="cuda:99")


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64])
def test_there_and_back(kind):
    values = torch.arange(12).reshape(3, 4).to(kind)
    there = values.cuda()
    assert there.is_cuda and not there.is_cpu and there.get_device() == 0 and there.dtype is kind
    assert torch.equal(there.cpu(), values)
    assert there.to("cuda") is there and there.cuda() is there


def test_strides_stay():
    values = torch.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1)
    there = values.cuda()
    assert there.stride() == values.stride() and torch.equal(there.cpu(), values)
    part = there[1:3, :, ::2]
    assert torch.equal(part.cpu(), values[1:3, :, ::2])


def test_dtype_and_device_at_once():
    values = torch.tensor([1.5, -2.25])
    assert torch.equal(values.to("cuda", torch.float64).cpu(), values.double())
    assert torch.equal(values.cuda().to("cpu", torch.int32), values.int())


def test_views_share_memory():
    base = torch.zeros(3, 4, device="cuda")
    base[1].fill_(2)
    base.t()[3].add_(1.0)
    assert base.untyped_storage().data_ptr() == base[1:].untyped_storage().data_ptr()
    assert base.tolist() == [[0, 0, 0, 1], [2, 2, 2, 3], [0, 0, 0, 1]]


def test_copies_into_parts():
    target, source = torch.zeros(4, 4, device="cuda"), torch.arange(4.0)
    target[:, 1].copy_(source)
    target[2] = source.cuda()
    host = torch.zeros(4, 4)
    host[:, ::2].copy_(target[:, :2])
    assert target[:, 1].tolist() == [0, 1, 1, 3] and host[:, 2].tolist() == [0, 1, 1, 3]
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        target.copy_(torch.zeros(3, 4, 4))


def test_text():
    assert repr(torch.tensor([1.0, 2.0], device="cuda")) == "tensor([1., 2.], device='cuda:0')"
    assert repr(torch.tensor(3, device="cuda")) == "tensor(3, device='cuda:0')"
    assert f"{torch.tensor(0.5, device='cuda'):.2f}" == "0.50"


def test_values():
    there = torch.tensor([[1, 2], [3, 4]], device="cuda")
    assert there.tolist() == [[1, 2], [3, 4]] and there[1, 0].item() == 3 and int(there[0, 1]) == 2
    assert bool((there == there).all())


def test_the_host_cannot_read_it():
    there = torch.ones(2, device="cuda")
    for read in (there.numpy, there.__array__, lambda: there.untyped_storage().numpy(), lambda: there._impl.array):
        with pytest.raises(TypeError, match=NUMPY):
            read()
    assert there.numpy(force=True).tolist() == [1, 1]


def test_complex_numbers():
    there = torch.tensor([3.0, 0.0], device="cuda") + 4j
    assert there.abs().tolist() == [5, 4] and there.conj().tolist() == [3 - 4j, -4j]


def test_kinds():
    there = torch.ones(2, device="cuda")
    assert there.type() == "torch.cuda.FloatTensor" and there.share_memory_() is there and there.is_shared()
    there.storage()[1] = 5.0
    assert there.storage()[1] == 5 and there.storage().tolist() == there.tolist() == [1, 5]


def test_mixed_devices():
    there, here = torch.ones(2, device="cuda"), torch.ones(2)
    for call in (lambda: there + here, lambda: here + there, lambda: torch.matmul(here, there)):
        with pytest.raises(RuntimeError, match=SAME):
            call()
    assert (there + torch.tensor(2.0)).tolist() == [3, 3]
    assert (torch.tensor(2.0) * there).tolist() == [2, 2]


def test_factories():
    assert torch.zeros(2, 3, device="cuda").sum().item() == 0
    assert torch.full((2,), 7, device="cuda").tolist() == [7, 7]
    assert torch.arange(3, device="cuda").tolist() == [0, 1, 2]
    there = torch.ones(2, dtype=torch.float64, device="cuda")
    for made in (torch.ones_like(there), there.new_ones(2), torch.full_like(there, 1)):
        assert made.is_cuda and made.dtype is torch.float64 and made.tolist() == [1, 1]
    assert torch.zeros_like(there, device="cpu").device.type == "cpu"
    with torch.device("cuda"):
        assert torch.ones(2).is_cuda


def test_pinned_memory():
    pinned = torch.arange(5.0).pin_memory()
    assert pinned.is_pinned() and not torch.arange(5.0).is_pinned() and pinned.tolist() == [0, 1, 2, 3, 4]
    there = pinned.to("cuda", non_blocking=True)
    back = there.to("cpu", non_blocking=True)
    torch.cuda.synchronize()
    assert back.is_pinned() and torch.equal(back, pinned)
    assert torch.empty(2, pin_memory=True).is_pinned() and torch.tensor([1], pin_memory=True).is_pinned()


def test_non_blocking_copies_are_done_later(standin):
    pinned = torch.ones(4).pin_memory()
    there = pinned.to("cuda", non_blocking=True)
    pinned.fill_(5.0)  # before the device has read it
    assert there.tolist() == [5, 5, 5, 5]


def test_copies_and_pickles():
    module = torch.nn.Linear(2, 2).cuda()
    twin = copy.deepcopy(module)
    assert twin.weight.is_cuda and twin.weight.data_ptr() != module.weight.data_ptr()
    assert torch.equal(twin.weight.cpu(), module.weight.cpu())
    again = pickle.loads(pickle.dumps(torch.arange(3, device="cuda")))
    assert again.is_cuda and again.tolist() == [0, 1, 2]


def test_resizing():
    tensor = torch.arange(4.0, device="cuda")
    tensor.resize_(2, 4)
    assert tensor[0].tolist() == [0, 1, 2, 3] and tensor.shape == (2, 4)
    storage = torch.ones(2, device="cuda").untyped_storage()
    storage.resize_(16)
    assert storage.nbytes() == 16 and storage.device.type == "cuda"


def test_other_devices():
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two devices")
    first = torch.arange(3.0, device="cuda:0")
    second = first.to("cuda:1")
    assert second.device.index == 1 and (second + 1).tolist() == [1, 2, 3]
    with pytest.raises(RuntimeError, match="at least two devices, cuda:0 and cuda:1!"):
        first + second
    with torch.cuda.device(1):
        assert torch.empty(1, device="cuda").device.index == 1
    assert torch.cuda.current_device() == 0


def test_dlpack_and_array_interface():
    there = torch.arange(6.0, device="cuda").reshape(2, 3)
    facts = there.t().__cuda_array_interface__
    assert facts["shape"] == (3, 2) and facts["data"] == (there.data_ptr(), False) and facts["strides"] == (4, 12)
    assert there.__dlpack_device__() == (2, 0)
    again = torch.from_dlpack(there.t().__dlpack__())
    assert again.is_cuda and again.data_ptr() == there.data_ptr() and again.tolist() == there.t().tolist()

    class Other:
        __cuda_array_interface__ = facts

    assert torch.as_tensor(Other(), device="cuda").data_ptr() == there.data_ptr()


def test_no_memory_is_leaked(standin):
    before = torch.cuda.memory_allocated()
    for _ in range(3):
        tensor = torch.ones(100, device="cuda", requires_grad=True)
        (tensor * tensor).sum().backward()
        del tensor
    standin.wait_for_device()
    assert torch.cuda.memory_allocated() - before <= 8 * 512  # numbers are kept as tensors


def test_gelu_and_its_gradient_where_they_are_small_large_or_no_numbers():
    values = torch.cat([torch.linspace(-9, 9, 20001), torch.tensor([float("inf"), float("nan"), 0.0, -0.0, 1e30, 60.0, -60.0])])
    exact = values.double().requires_grad_()
    wanted = torch.nn.functional.gelu(exact)
    wanted.backward(torch.ones_like(wanted))
    given = values.cuda().requires_grad_()
    found = torch.nn.functional.gelu(given)
    found.backward(torch.ones_like(found))
    assert torch.allclose(found.cpu().double(), wanted, rtol=4e-7, atol=4e-7, equal_nan=True)
    finite = values.abs() < 1e10
    assert torch.allclose(given.grad.cpu().double()[finite], exact.grad[finite], rtol=4e-7, atol=6e-7)


def test_complex_numbers_of_two_sizes():
    values = torch.ones(3, dtype=torch.complex64, device="cuda")
    wide = values.to(torch.complex128)
    assert wide.dtype == torch.complex128 and wide.copy_(values * 2).tolist() == [2, 2, 2]
    assert values.fill_(2 + 1j).tolist() == [2 + 1j] * 3
    assert torch.full((2,), 1j, device="cuda").tolist() == [1j, 1j]


def test_fills_with_numbers_out_of_range_wrap_around():
    assert torch.zeros(4, dtype=torch.uint8, device="cuda").fill_(-1).tolist() == [255] * 4


def test_writes_need_memory():
    freed = torch.arange(6.0, device="cuda")
    freed.untyped_storage().resize_(0)
    for write in (lambda: freed.fill_(1), freed.zero_, lambda: freed.copy_(torch.ones(6))):
        with pytest.raises(RuntimeError, match="storage"):
            write()


@pytest.mark.parametrize("write", [
    lambda x: x.add_(1.5), lambda x: x.div_(2), lambda x: x.mul_(1.5), lambda x: x.add_(torch.ones(3, device=x.device)),
])  # fmt: skip
def test_results_that_do_not_fit_the_tensor_that_they_are_written_to(write):
    for place in ("cpu", "cuda"):
        values = torch.tensor([1, 2, 3], device=place)
        for _ in range(3):
            with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
                write(values)
        assert values.tolist() == [1, 2, 3]
