"""Compiled code on the device: inference, training, graphs of two devices, CUDA graphs."""

import pytest

import rushlight as torch

F = torch.nn.functional
close = torch.testing.assert_close


def compiled(function, **options):
    return torch.compile(function, fullgraph=True, **options)


def chain(x, y):
    return torch.softmax(F.gelu(x * 2 + y).sum(1, keepdim=True) - x, -1)


def test_a_chain_is_one_program(standin):
    x, y = torch.randn(4, 32), torch.randn(32)
    there = [x.cuda(), y.cuda()]
    run = compiled(chain)
    result = run(*there)
    assert result.is_cuda
    close(result.cpu(), chain(x, y))
    standin.wait_for_device()
    standin.log.clear()
    run(*there)
    kernels = [entry for entry in standin.log if entry[0] == "launch"]
    assert 1 <= len(kernels) <= 2 and all(entry[1] == 0 for entry in kernels)


def test_products():
    layer = torch.nn.Linear(16, 8)
    x = torch.randn(4, 16)
    wanted = layer(x)
    close(compiled(layer.cuda())(x.cuda()).cpu(), wanted)


def test_open_sizes():
    run = torch.compile(lambda x: (x * 2).relu(), fullgraph=True, dynamic=True)
    for size in (5, 7, 64):
        x = torch.randn(size)
        close(run(x.cuda()).cpu(), (x * 2).relu())


def test_factories_and_guards_on_devices():
    def function(x):
        return x + torch.arange(3, device=x.device) + torch.ones(3, device="cuda" if x.is_cuda else "cpu")

    run = compiled(function)
    assert run(torch.zeros(3)).tolist() == [1, 2, 3] and run(torch.zeros(3, device="cuda")).tolist() == [1, 2, 3]


def test_mutated_inputs():
    def function(x):
        x.mul_(2)
        return x + 1

    x = torch.ones(3, device="cuda")
    assert compiled(function)(x).tolist() == [3, 3, 3] and x.tolist() == [2, 2, 2]


def test_two_devices():
    def function(here, there):
        near = (here * 2 + 1).tanh()
        far = near.to("cuda") + there.exp()
        return near.sum(), far * 2, far.cpu() + near

    here, there = torch.randn(8), torch.randn(8)
    results = compiled(function)(here, there.cuda())
    assert [result.device.type for result in results] == ["cpu", "cuda", "cpu"]
    near = (here * 2 + 1).tanh()
    for result, wanted in zip(results, (near.sum(), (near + there.exp()) * 2, 2 * near + there.exp()), strict=True):
        close(result.cpu(), wanted)


def test_numbers_of_the_cpu():
    scale = torch.tensor(3.0)
    assert compiled(lambda x: x * scale)(torch.ones(2, device="cuda")).tolist() == [3, 3]


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.LayerNorm(16), torch.nn.Linear(16, 4))


def trained(device, steps=3, **options):
    model = network().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    run = torch.compile(model, **options) if options else model
    torch.manual_seed(1)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(run(torch.randn(5, 8).to(device)), torch.arange(5).remainder(4).to(device))
        loss.backward()
        optimizer.step()
    return [loss.detach().cpu(), *(parameter.detach().cpu() for parameter in model.parameters())]


def test_training():
    for ours, theirs in zip(trained("cuda", fullgraph=True), trained("cpu"), strict=True):
        close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_training_by_cuda_graphs():
    for ours, theirs in zip(trained("cuda", steps=6, mode="reduce-overhead"), trained("cpu", steps=6), strict=True):
        close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_cuda_graphs_replay(standin):
    run = torch.compile(lambda x, w: (x @ w).relu() + 1, mode="reduce-overhead")
    w = torch.randn(4, 4, device="cuda")
    kept = []
    for _ in range(6):
        x = torch.randn(3, 4)
        kept.append((run(x.cuda(), w), (x @ w.cpu()).relu() + 1))
    assert any(entry[0] == "launch_graph" for entry in standin.log)
    for result, wanted in kept:
        close(result.cpu(), wanted)


def test_cuda_graphs_that_write(standin):
    total = torch.zeros(3, device="cuda")
    run = torch.compile(lambda x: total.add_(x), mode="reduce-overhead")
    for _ in range(6):
        run(torch.ones(3, device="cuda"))
    assert total.tolist() == [6, 6, 6] and total._version >= 6


def test_cuda_graphs_follow_their_constants():
    weight = torch.ones(2, 2, device="cuda")
    run = torch.compile(lambda x: x @ (weight * 2), mode="reduce-overhead")
    for scale in (1.0, 1.0, 1.0, 1.0, 3.0, 3.0, 3.0, 3.0):
        weight.fill_(scale)
        assert run(torch.ones(1, 2, device="cuda")).tolist() == [[4 * scale, 4 * scale]]


def test_dropout_draws_anew():
    model = torch.compile(torch.nn.Dropout(0.5).cuda(), fullgraph=True)
    x = torch.ones(64, device="cuda")
    torch.cuda.manual_seed(3)
    first, second = model(x).cpu(), model(x).cpu()
    torch.cuda.manual_seed(3)
    assert not torch.equal(first, second) and torch.equal(model(x).cpu(), first)
    assert set(first.tolist()) == {0.0, 2.0}


def test_an_index_out_of_range():
    run = compiled(lambda table, index: table[index] * 2)
    table, index = torch.arange(4.0).cuda(), torch.tensor([0, 9]).cuda()
    run(table, index)
    with pytest.raises(IndexError, match="out of range"):
        torch.cuda.synchronize()
    assert run(table, index.clamp(max=3)).tolist() == [0, 6]


def test_a_function_that_was_compiled_for_the_cpu():
    def scaled(x):
        return x * 0.3 + 1

    x = torch.randn(4000)
    wanted = torch.compile(scaled)(x)
    close(torch.compile(scaled)(x.cuda()).cpu(), wanted)
    close(torch.compile(scaled)(x), wanted)
