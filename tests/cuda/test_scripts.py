"""Scripted, traced and frozen modules on the device, and their archives."""

import io

import pytest

import rushlight as torch

F = torch.nn.functional


class Network(torch.nn.Module):
    """Layers, buffers, control flow that reads values, and factories."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = torch.nn.Conv2d(1, 2, 3, padding=1), torch.nn.BatchNorm2d(2)
        self.linear, self.recurrent = torch.nn.Linear(8, 4), torch.nn.LSTM(4, 3)
        self.register_buffer("mask", torch.tensor([True, False, True, False]))

    def forward(self, x):
        y = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2).flatten(1)
        z, _ = self.recurrent(self.linear(y).masked_fill(self.mask, -1.0).unsqueeze(0))
        total = torch.zeros(z.size(1), device=z.device)
        for i in range(z.size(2)):
            if bool(z[0, 0, i] > 0):
                total = total + z[0, :, i]
            else:
                total = total - z[0, :, i]
        return total + torch.arange(z.size(1), device=x.device)


@pytest.fixture(scope="module")
def case():
    torch.manual_seed(0)
    model, x = Network().eval(), torch.randn(2, 1, 4, 4)
    return model, x, model(x).detach()


def scripted(model):
    made = torch.jit.script(Network())
    made.load_state_dict(model.state_dict())
    return made.eval()


def same(ours, wanted):
    torch.testing.assert_close(ours.detach().cpu(), wanted, rtol=1e-4, atol=1e-5)


def test_scripted_modules_move(case):
    model, x, wanted = case
    module = scripted(model)
    assert module.cuda() is module and all(value.is_cuda for value in module.state_dict().values())
    for _ in range(3):
        same(module(x.cuda()), wanted)
    same(module.cpu()(x), wanted)


def test_scripted_modules_train(case):
    model, x, _ = case
    module = scripted(model).cuda()
    module(x.cuda()).sum().backward()
    model.zero_grad()
    model(x).sum().backward()
    for (_, ours), (_, wanted) in zip(module.named_parameters(), model.named_parameters(), strict=True):
        same(ours.grad, wanted.grad)


@pytest.mark.parametrize("place", ["cpu", "cuda"])
def test_archives(case, place):
    model, x, wanted = case
    file = io.BytesIO()
    torch.jit.save(scripted(model).to(place), file)
    for target in ("cpu", "cuda", torch.device("cuda:0"), None):
        file.seek(0)
        loaded = torch.jit.load(file, map_location=target)
        kind = torch.device(target or place).type
        assert all(value.device.type == kind for value in loaded.state_dict().values())
        same(loaded(x.to(kind)), wanted)


def test_frozen_modules(case):
    model, x, wanted = case
    frozen = torch.jit.freeze(scripted(model).cuda())
    same(frozen(x.cuda()), wanted)
    file = io.BytesIO()
    torch.jit.save(frozen, file)
    file.seek(0)
    same(torch.jit.load(file)(x.cuda()), wanted)
    same(torch.jit.optimize_for_inference(scripted(model).cuda())(x.cuda()), wanted)


def test_traced_modules():
    model, x = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Softmax(-1)), torch.randn(2, 3)
    wanted = model(x).detach()
    for place in ("cpu", "cuda"):
        traced = torch.jit.trace(model.to(place), x.to(place))
        file = io.BytesIO()
        torch.jit.save(traced, file)
        for target in ("cpu", "cuda"):
            file.seek(0)
            same(torch.jit.load(file, map_location=target)(x.to(target)), wanted)
        same(traced.cuda()(x.cuda()), wanted)


def test_scripts_name_devices():
    @torch.jit.script
    def function(x, place: torch.device):
        made = torch.jit.fork(torch.relu, x.to(place))
        return torch.jit.wait(made) + torch.ones([2], device=place), x.is_cuda, x.device == place

    made, is_cuda, is_there = function(torch.tensor([-1.0, 2.0]), torch.device("cuda:0"))
    assert made.is_cuda and made.tolist() == [1, 3] and not is_cuda and not is_there
