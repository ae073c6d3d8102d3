"""The library on the device: autocast, optimizers, random numbers, files, scripts, loaders."""

import io
import warnings

import pytest

import rushlight as torch
from rushlight.cuda import generators

F = torch.nn.functional
close = torch.testing.assert_close


def stepped(make, device, steps=4):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3)).to(device)
    optimizer = make(model.parameters())
    for _ in range(steps):
        torch.manual_seed(1)
        optimizer.zero_grad()
        model(torch.randn(4, 6).to(device)).square().mean().backward()
        optimizer.step()
    return [parameter.detach().cpu() for parameter in model.parameters()]


OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.1),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=0.01, weight_decay=0.1, amsgrad=True),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=0.01),
    "rmsprop": lambda parameters: torch.optim.RMSprop(parameters, lr=0.01),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name):
    for ours, theirs in zip(stepped(OPTIMIZERS[name], "cuda"), stepped(OPTIMIZERS[name], "cpu"), strict=True):
        close(ours, theirs, rtol=1e-4, atol=1e-6)


def test_a_step_is_one_graph(standin):
    parameters = [torch.nn.Parameter(torch.randn(3, 4, device="cuda")) for _ in range(3)]
    optimizer = torch.optim.AdamW(parameters)
    for parameter in parameters:
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    standin.wait_for_device()
    standin.log.clear()
    optimizer.step()
    assert sum(entry[0] == "launch" for entry in standin.log) <= len(parameters)


def test_autocast():
    x, w = torch.randn(3, 4, device="cuda"), torch.randn(4, 5, device="cuda", requires_grad=True)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        product = x @ w
        assert product.dtype is torch.bfloat16 and torch.softmax(product, -1).dtype is torch.float32
        assert (x.cpu() @ w.detach().cpu()).dtype is torch.float32
        assert torch.is_autocast_enabled("cuda") and not torch.is_autocast_enabled("cpu")
    product.float().sum().backward()
    assert w.grad.dtype is torch.float32
    with torch.autocast("cuda"):
        assert (x @ w).dtype is torch.float16
    with torch.autocast("cpu"):
        assert (x @ w).dtype is torch.float32


def test_autocast_compiled():
    model = torch.nn.Linear(4, 4).cuda()

    @torch.compile(fullgraph=True)
    def run(x):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            return model(x)

    assert run(torch.randn(2, 4, device="cuda")).dtype is torch.bfloat16


def test_a_scaler_leaves_out_steps_with_infinities():
    parameter = torch.nn.Parameter(torch.ones(2, device="cuda"))
    optimizer, scaler = torch.optim.SGD([parameter], lr=1.0), torch.amp.GradScaler("cuda", init_scale=4.0)
    scaler.scale((parameter * 0.5).sum()).backward()
    assert parameter.grad.tolist() == [2, 2]
    scaler.step(optimizer)
    scaler.update()
    assert parameter.tolist() == [0.5, 0.5]
    parameter.grad.fill_(float("inf"))
    scaler.step(optimizer)
    scaler.update()
    assert parameter.tolist() == [0.5, 0.5] and scaler.get_scale() == 2.0


def test_random_numbers():
    torch.manual_seed(5)
    first = torch.randn(1000, device="cuda")
    state = torch.cuda.get_rng_state()
    second = torch.rand(8, device="cuda")
    torch.cuda.set_rng_state(state)
    assert torch.equal(torch.rand(8, device="cuda").cpu(), second.cpu())
    torch.cuda.manual_seed(5)
    assert torch.equal(torch.randn(1000, device="cuda").cpu(), first.cpu())
    assert abs(first.mean().item()) < 0.2 and 0.8 < first.std().item() < 1.2
    generator = torch.Generator("cuda").manual_seed(1)
    numbers = torch.rand(4, device="cuda", generator=generator)
    assert torch.equal(torch.rand(4, device="cuda", generator=generator.manual_seed(1)).cpu(), numbers.cpu())
    assert sorted(torch.randperm(9, device="cuda").tolist()) == list(range(9))


def test_files():
    saved = {"weights": torch.arange(6.0, device="cuda").reshape(2, 3)[:, 1:], "here": torch.ones(2)}
    for zipped in (True, False):
        file = io.BytesIO()
        torch.save(saved, file, _use_new_zipfile_serialization=zipped)
        file.seek(0)
        loaded = torch.load(file)
        assert loaded["weights"].device == saved["weights"].device and loaded["here"].device.type == "cpu"
        assert loaded["weights"].tolist() == [[1, 2], [4, 5]]
        for place in ("cpu", {"cuda:0": "cpu"}, lambda storage, location: storage, torch.device("cpu")):
            file.seek(0)
            assert torch.load(file, map_location=place)["weights"].tolist() == [[1, 2], [4, 5]]
        file.seek(0)
        assert torch.load(file, map_location="cuda")["here"].is_cuda


def test_scripts():
    @torch.jit.script
    def function(x: torch.Tensor, n: int):
        for _ in range(n):
            x = x * 2 + 1
        return x

    assert function(torch.zeros(2, device="cuda"), 3).tolist() == [7, 7]
    module = torch.jit.script(torch.nn.Linear(2, 2)).to("cuda")
    x = torch.ones(1, 2, device="cuda")
    file = io.BytesIO()
    torch.jit.save(module, file)
    file.seek(0)
    close(torch.jit.load(file, map_location="cuda")(x).cpu(), module(x).cpu())


def test_loader():
    data = torch.utils.data.TensorDataset(torch.arange(6.0), torch.arange(6))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for values, labels in torch.utils.data.DataLoader(data, batch_size=3, pin_memory=True):
            assert values.is_pinned() and labels.to("cuda", non_blocking=True).is_cuda


def test_checkpointed_dropout():
    x = torch.ones(64, device="cuda", requires_grad=True)
    made = torch.utils.checkpoint.checkpoint(lambda x: F.dropout(x, 0.5) * 3, x, use_reentrant=False)
    made.sum().backward()
    assert torch.equal(x.grad.cpu(), made.detach().cpu())


def test_streams_and_events(standin):
    side, event = torch.cuda.Stream(), torch.cuda.Event(enable_timing=True)
    x = torch.ones(4, device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        assert torch.cuda.current_stream() == side
        y = x * 2
        y.record_stream(torch.cuda.default_stream())
    event.record(side)
    torch.cuda.current_stream().wait_event(event)
    assert (y + 1).tolist() == [3, 3, 3, 3] and event.query()
    names = [entry[:2] for entry in standin.log]
    assert ("launch", side.cuda_stream) in names and ("stream_waits_for", 0) in names


def test_graphs():
    static = torch.zeros(3, device="cuda")
    static + 1  # compiles
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = static + 1
    for value in (2.0, 5.0):
        static.fill_(value)
        graph.replay()
        assert result.tolist() == [value + 1] * 3


def test_graphed_callables():
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU()).cuda()
    x = torch.randn(2, 3)
    wanted = model(x.cuda())
    wanted.sum().backward()
    gradients = [parameter.grad.cpu() for parameter in model.parameters()]
    model.zero_grad()
    graphed = torch.cuda.make_graphed_callables(model, (torch.randn(2, 3, device="cuda"),))
    result = graphed(x.cuda())
    result.sum().backward()
    close(result.detach().cpu(), wanted.detach().cpu())
    for parameter, gradient in zip(model.parameters(), gradients, strict=True):
        close(parameter.grad.cpu(), gradient)


def test_questions():
    facts = torch.cuda.get_device_properties(0)
    assert torch.cuda.get_device_capability() == (facts.major, facts.minor) and facts.total_memory > 0
    assert torch.cuda.get_device_name() and torch.cuda.current_device() == 0 and torch.cuda.is_initialized()
    free, total = torch.cuda.mem_get_info()
    assert 0 <= free <= total
    assert torch.accelerator.is_available() and torch.accelerator.current_accelerator() == torch.device("cuda")


def test_arguments_of_captures_are_not_ignored():
    with pytest.raises(NotImplementedError, match="keep_graph"):
        torch.cuda.CUDAGraph(keep_graph=True)
    with torch.cuda.stream(torch.cuda.Stream()), pytest.raises(RuntimeError, match="got 'strict'"):
        torch.cuda.CUDAGraph().capture_begin(capture_error_mode="strict")
    sample = torch.ones(2, device="cuda", requires_grad=True)
    with pytest.raises(RuntimeError):
        torch.cuda.make_graphed_callables(lambda x, y: x * 2, (sample, sample.detach().clone().requires_grad_()))
    with pytest.raises(NotImplementedError, match="mempool_id"):
        torch.cuda.memory_snapshot((0, 1))
    assert "freed" in torch.cuda.memory_summary() and "freed" not in torch.cuda.memory_summary(abbreviated=True)


def test_streams_without_an_object_are_taken_again():
    x = torch.ones(4, device="cuda")
    handles, sizes = set(), set()
    for _ in range(4):
        side = torch.Stream("cuda")
        handles.add(side.cuda_stream)
        side.wait_stream(torch.cuda.current_stream())
        with side:
            y = x * 2
        torch.cuda.current_stream().wait_stream(side)
        x.record_stream(side)
        del side
        assert (y + 1).tolist() == [3, 3, 3, 3]
        del y
        sizes.add(torch.cuda.memory_allocated())
    assert len(handles) == 1 and len(sizes) <= 2  # the first run keeps its number 2


def test_streams_and_events_of_any_accelerator():
    stream, event = torch.Stream(device="cuda:0"), torch.Event("cuda", enable_timing=True)
    assert isinstance(stream, torch.cuda.Stream) and isinstance(event, torch.cuda.Event) and isinstance(event, torch.Event)
    event.record(stream)
    event.synchronize()
    assert event.query() and stream.query() and event.elapsed_time(event) == 0
    with pytest.raises(RuntimeError, match="Expected a device with streams"):
        torch.Stream("cpu")


def test_generators_by_keyword():
    first, second = torch.Generator(device="cuda").manual_seed(3), torch.Generator("cuda").manual_seed(3)
    assert torch.equal(torch.rand(4, device="cuda", generator=first), torch.rand(4, device="cuda", generator=second))


def test_packed_sequences():
    data = torch.arange(12.0).reshape(3, 2, 2)
    packed = torch.nn.utils.rnn.pack_padded_sequence(data.cuda(), torch.tensor([2, 3]), enforce_sorted=False)
    assert packed.is_cuda and packed.batch_sizes.tolist() == [2, 2, 1] and packed.batch_sizes.device.type == "cpu"
    padded, lengths = torch.nn.utils.rnn.pad_packed_sequence(packed)
    assert lengths.tolist() == [2, 3] and torch.equal(padded[:, 1].cpu(), data[:, 1])
    with pytest.raises(RuntimeError, match="CPU int64"):
        torch.nn.utils.rnn.pack_padded_sequence(data.cuda(), torch.tensor([3, 2]).cuda())
    on_host = torch.nn.utils.rnn.pack_sequence([data[:, 0], data[:2, 0]])
    assert on_host.pin_memory().is_pinned() and not on_host.is_pinned() and on_host.cuda().is_cuda


def test_factories_that_write_to_a_tensor():
    target = torch.zeros(0, device="cuda", dtype=torch.int64)
    assert torch.arange(3, out=target) is target and target.tolist() == [0, 1, 2]
    assert torch.rand(3, out=torch.zeros(3, device="cuda")).is_cuda
    with pytest.raises(RuntimeError, match="does not match device type of out"):
        torch.ones(3, out=torch.zeros(3, device="cuda"), device="cpu")


def test_initial_values():
    init = torch.nn.init
    weight = init.orthogonal_(torch.empty(3, 3, device="cuda"))
    close((weight @ weight.t()).cpu(), torch.eye(3))
    assert init.trunc_normal_(torch.empty(3, 3, device="cuda"), std=10.0).abs().max() <= 2
    assert (init.sparse_(torch.empty(4, 2, device="cuda"), 0.5) == 0).sum() == 4
    with pytest.raises(AssertionError, match="Mismatched elements: 1 / 2"):
        close(torch.ones(2, device="cuda"), torch.tensor([1.0, 2.0]), check_device=False)


def test_states_of_a_generator_that_has_not_drawn_yet(monkeypatch):
    monkeypatch.setattr(generators, "_generators", {})
    with torch.random.fork_rng():
        first = torch.rand(4, device="cuda")
    assert torch.equal(torch.rand(4, device="cuda"), first)


def test_exported_programs_keep_their_device():
    model, x = torch.nn.Linear(3, 2).cuda(), torch.ones(2, 3, device="cuda")
    file = io.BytesIO()
    torch.export.save(torch.export.export(model, (x,)), file)
    file.seek(0)
    loaded = torch.export.load(file)
    assert {str(value.device) for value in loaded.state_dict.values()} == {"cuda:0"}
    close(loaded.module()(x), model(x))
