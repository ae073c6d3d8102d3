"""Small models on the device: eager and compiled give the CPU's results, in inference and in training."""

import os

import pytest

import rushlight as torch
from rushlight.cuda.driver import active_driver
from rushlight.cuda.stand_in import StandIn
from tests.inductor.triton.models import MODELS, Layer

close = torch.testing.assert_close
F = torch.nn.functional
SLOW = {("resnet", "eager"), ("resnet", "compiled"), ("bert", "eager"), ("vit", "compiled"), ("gpt training", "eager"),
        ("gpt training", "compiled")}  # fmt: skip


class GPT(torch.nn.Module):
    """A decoder of tokens."""

    def __init__(self):
        super().__init__()
        self.tokens, self.places = torch.nn.Embedding(30, 16), torch.nn.Embedding(32, 16)
        self.layers = torch.nn.Sequential(*(Layer(16, 2, 0.0) for _ in range(2)))
        self.norm, self.head = torch.nn.LayerNorm(16), torch.nn.Linear(16, 30, bias=False)

    def forward(self, x):
        hidden = self.tokens(x) + self.places(torch.arange(x.shape[1], device=x.device))
        return self.head(self.norm(self.layers(hidden)))


def made(name):
    torch.manual_seed(0)
    if name == "gpt":
        return GPT().eval(), (torch.randint(0, 30, (2, 12)),)
    return MODELS[name]()


def on_gpu(inputs):
    return [value.cuda() if isinstance(value, torch.Tensor) else value for value in inputs]


def flat(result):
    return [value for value in torch.utils._pytree.tree_leaves(result) if isinstance(value, torch.Tensor)]


def skip_if_slow(name):
    """Skip what takes too long in the interpreter, unless there is a GPU or RUSHLIGHT_SLOW_TESTS asks for it."""
    if name in SLOW and isinstance(active_driver(), StandIn) and not os.environ.get("RUSHLIGHT_SLOW_TESTS"):
        pytest.skip("takes more than 10 s in Triton's interpreter; RUSHLIGHT_SLOW_TESTS=1 runs it")


@pytest.mark.parametrize("way", ["eager", "compiled"])
@pytest.mark.parametrize("name", ["bert", "vit", "resnet", "gpt"])
def test_inference(name, way):
    skip_if_slow((name, way))
    model, inputs = made(name)
    with torch.no_grad():
        wanted = flat(model(*inputs))
        run = torch.compile(model.cuda()) if way == "compiled" else model.cuda()
        found = flat(run(*on_gpu(inputs)))
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours.is_cuda
        close(ours.cpu(), theirs, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("way", ["eager", "compiled"])
def test_training_of_gpt(way):
    skip_if_slow(("gpt training", way))
    losses = {}
    for device in ("cpu", "cuda"):
        model, (tokens,) = made("gpt")
        model.train().to(device)
        run = torch.compile(model) if way == "compiled" and device == "cuda" else model
        optimizer, tokens = torch.optim.AdamW(model.parameters(), lr=0.01), tokens.to(device)
        losses[device] = []
        for _ in range(2):
            loss = F.cross_entropy(run(tokens).flatten(0, 1), tokens.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses[device].append(loss.item())
    close(torch.tensor(losses["cuda"]), torch.tensor(losses["cpu"]), rtol=1e-4, atol=1e-4)
