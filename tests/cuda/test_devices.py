"""Where devices meet: gradients, indices, numbers, types, generators, processes, and kinds of tensors that live on the CPU."""

import multiprocessing

import pytest

import rushlight as torch

F = torch.nn.functional
close = torch.testing.assert_close


def test_gradients_return_to_the_device_of_what_was_copied():
    weight = torch.nn.Parameter(torch.ones(3))
    there = weight.cuda()
    assert there.requires_grad and not there.is_leaf
    (there * there).sum().backward()
    assert weight.grad.is_cpu and weight.grad.tolist() == [2, 2, 2]
    source, target = torch.ones(2, device="cuda", requires_grad=True), torch.zeros(2)
    target.copy_(source * 3).sum().backward()
    assert source.grad.is_cuda and source.grad.tolist() == [3, 3]
    number = torch.tensor(2.0, requires_grad=True)
    (torch.ones(2, device="cuda") * number).sum().backward()
    assert number.grad.is_cpu and number.grad.item() == 2


def test_a_model_on_two_devices():
    first, second = torch.nn.Linear(3, 4), torch.nn.Linear(4, 2).cuda()
    second(first(torch.ones(1, 3)).cuda()).sum().backward()
    assert first.weight.grad.is_cpu and second.weight.grad.is_cuda


def test_a_gradient_on_another_device():
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return torch.ones(2)

    with pytest.raises(RuntimeError, match="expected device cuda:0 but got cpu"):
        Wrong.apply(torch.ones(2, device="cuda", requires_grad=True)).sum().backward()


def test_a_module_that_moves_after_a_step():
    layer = torch.nn.Linear(2, 2)
    layer(torch.ones(1, 2)).sum().backward()
    layer.cuda()
    assert layer.weight.grad.is_cuda
    layer(torch.ones(1, 2, device="cuda")).sum().backward()
    assert layer.weight.grad.tolist() == [[2, 2], [2, 2]]


@pytest.mark.filterwarnings("error")
def test_indices_on_the_cpu():
    here = torch.arange(12.0).reshape(3, 4)
    there, index, mask = here.cuda(), torch.tensor([2, 0]), here > 4
    for key in (index, (slice(None), index), mask, [0, 1], torch.tensor(1)):
        assert torch.equal(there[key].cpu(), here[key])
    for key, value in ((index, 5.0), (mask, 7.0), (mask, torch.tensor(8.0)), (index, [1.0, 2.0, 3.0, 4.0])):
        there[key] = here[key] = value
        assert torch.equal(there.cpu(), here)
    with pytest.raises(RuntimeError, match="indices should be either on cpu or on the same device as the indexed tensor"):
        here[index.cuda()]
    with pytest.raises(RuntimeError, match="at least two devices, cuda:0 and cpu!"):
        there[index] = torch.ones(2, 4)


@pytest.mark.filterwarnings("error")
def test_masks():
    here, mask = torch.arange(24.0).reshape(2, 3, 4), torch.tensor([[True, False, True], [False, False, True]])
    there = here.cuda()
    assert torch.equal(there[mask.cuda()].cpu(), here[mask]) and torch.equal(there[mask.cuda(), 1].cpu(), here[mask, 1])
    assert torch.equal(there.masked_select(there > 7).cpu(), here.masked_select(here > 7))
    there[mask.cuda()] = there[mask.cuda()] * 2
    here[mask] = here[mask] * 2
    assert torch.equal(there.cpu(), here)
    values = there.requires_grad_()
    values[values > 20].sum().backward()
    assert torch.equal(values.grad.cpu(), (here > 20).float())


MIXED = {
    "cat": lambda here, there: torch.cat([here, there]),
    "linear": F.linear,
    "where": lambda here, there: torch.where(there > 0, here, there),
    "mean squares": F.mse_loss,
    "in place": lambda here, there: here.add_(there),
    "embedding": lambda here, there: F.embedding(torch.tensor([0]), there),
    "a module": lambda here, there: torch.nn.LSTM(2, 2)(there),
}


@pytest.mark.parametrize("name", MIXED)
def test_mixed_devices(name):
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        MIXED[name](torch.ones(2, 2), torch.ones(2, 2, device="cuda"))


def test_numbers_of_the_cpu():
    there, number = torch.tensor([1.0, -2.0, 3.0], device="cuda"), torch.tensor(2.0)
    for call in (
        lambda x, n: n - x, torch.maximum, lambda x, n: x**n, lambda x, n: x.clamp(min=n), lambda x, n: x.masked_fill(x > 0, n),
        lambda x, n: torch.where(x > 0, x, n), lambda x, n: torch.lerp(x, x, n), lambda x, n: x.clone().mul_(n),
    ):  # fmt: skip
        close(call(there, number).cpu(), call(there.cpu(), number))


def test_types():
    there = torch.ones(2, device="cuda")
    assert isinstance(there, torch.cuda.FloatTensor) and not isinstance(there, torch.FloatTensor)
    assert not isinstance(torch.ones(2), torch.cuda.FloatTensor) and torch.cuda.LongTensor([1, 2]).is_cuda
    assert there.type(torch.FloatTensor).is_cpu and torch.ones(1).type("torch.cuda.HalfTensor").is_cuda
    assert torch.tensor(there).is_cuda and torch.as_tensor(there) is there
    torch.set_default_tensor_type("torch.cuda.DoubleTensor")
    try:
        assert torch.ones(1).is_cuda and torch.ones(1).dtype is torch.float64
    finally:
        torch.set_default_tensor_type("torch.FloatTensor")
    assert torch.ones(1).is_cpu


def test_the_default_device():
    torch.set_default_device("cuda")
    try:
        model = torch.nn.TransformerEncoderLayer(4, 2, 8)
        assert all(value.is_cuda for value in model.state_dict().values()) and model(torch.randn(1, 3, 4)).is_cuda
        assert torch.arange(3).is_cuda and torch.randperm(3).is_cuda and torch.zeros(2, device="cpu").is_cpu
        with torch.device("cpu"):
            assert torch.ones(1).is_cpu
    finally:
        torch.set_default_device(None)
    assert torch.ones(1).is_cpu


def test_generators_of_other_devices():
    with pytest.raises(RuntimeError, match="Expected a 'cpu' device type for generator but found 'cuda'"):
        torch.rand(2, generator=torch.Generator("cuda"))
    with pytest.raises(RuntimeError, match="Expected a 'cuda' device type for generator but found 'cpu'"):
        torch.rand(2, device="cuda", generator=torch.Generator())
    before = torch.cuda.get_rng_state()
    with torch.random.fork_rng(devices=[0]):
        torch.rand(3, device="cuda")
    assert torch.equal(torch.cuda.get_rng_state(), before)


def test_memory_formats_of_modules():
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4)).cuda()
    model.to(memory_format=torch.channels_last)
    result = model(torch.randn(2, 3, 5, 5, device="cuda").to(memory_format=torch.channels_last))
    assert model[0].weight.is_contiguous(memory_format=torch.channels_last)
    assert result.is_contiguous(memory_format=torch.channels_last)


def test_tensors_without_data():
    empty, there = torch.empty(2, device="meta"), torch.ones(2, device="cuda")
    for call in (empty.cuda, lambda: there.copy_(empty), torch.nn.Linear(2, 2, device="meta").cuda):
        with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
            call()
    assert there.to("meta").is_meta and empty.copy_(there) is empty
    assert torch.nn.Linear(2, 2, device="meta").to_empty(device="cuda").weight.is_cuda


ON_THE_CPU = {
    "a sparse tensor": lambda there: torch.eye(2).to_sparse().cuda(),
    "a compressed one": lambda there: torch.eye(2).to_sparse_csr().cuda(),
    "a factory": lambda there: torch.sparse_coo_tensor(torch.zeros(1, 1).long(), torch.ones(1), device="cuda"),
    "a conversion": lambda there: there.to_sparse(),
    "a sparse gradient": lambda there: F.embedding(torch.tensor([0]).cuda(), there.requires_grad_(), sparse=True).sum().backward(),
    "a quantized tensor": lambda there: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8).cuda(),
    "quantization": lambda there: torch.quantize_per_tensor(there, 0.1, 0, torch.qint8),
}


@pytest.mark.parametrize("name", ON_THE_CPU)
def test_kinds_of_tensors_that_live_on_the_cpu(name):
    with pytest.raises(NotImplementedError, match="live on the CPU only, not on cuda"):
        ON_THE_CPU[name](torch.ones(2, 2, device="cuda"))


def _use_device(answers):
    try:
        answers.put(str(torch.ones(2, device="cuda")))
    except RuntimeError as error:
        answers.put(str(error))


def test_forked_processes():
    torch.ones(1, device="cuda")
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    child = context.Process(target=_use_device, args=(answers,))
    child.start()
    assert "Cannot re-initialize CUDA in forked subprocess" in answers.get()
    child.join()
