"""The stages that every network goes through: build, weights, forward, backward, steps, compiled, saved and loaded again."""

from __future__ import annotations

import tempfile
import zlib
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from tests.clients.stages import Client, stage


class Network(Client):
    """A module with inputs. Subclasses define `build` and `inputs`, and `loss` if it is not the first output."""

    def make(self) -> torch.nn.Module:
        """The client's network in a tiny configuration."""
        raise NotImplementedError

    def inputs(self) -> dict:
        """Keyword arguments of a call."""
        raise NotImplementedError

    def call(self, module) -> list[torch.Tensor]:
        """The tensors in a call's result."""
        return tensors_of(module(**self.inputs()))

    def loss(self, module) -> torch.Tensor:
        """A number to minimise."""
        return sum((value.float() ** 2).mean() for value in self.call(module) if value.is_floating_point())

    @stage
    def build(self):
        self.module = self.make().eval()
        sizes = [f"{name} {list(value.shape)}" for name, value in self.module.named_parameters()]
        return [len(sizes), zlib.crc32("\n".join(sizes).encode())]

    @stage
    def load_weights(self):
        """Loads weights that are the same in every process, through a safetensors file."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "weights.safetensors"
            save_file(made_weights(self.module), file)
            told = self.module.load_state_dict(load_file(file), strict=False)
        return sorted(told.unexpected_keys)

    @stage
    def forward(self):
        with torch.no_grad():
            return self.call(self.module)

    @stage
    def backward(self):
        self.module.zero_grad()
        self.loss(self.module).backward()
        return gradients_of(self.module)

    @stage
    def step(self):
        before = {name: value.clone() for name, value in self.module.state_dict().items()}
        optimizer = torch.optim.AdamW(self.module.parameters(), lr=1e-3)
        losses = []
        for _ in range(3):
            optimizer.zero_grad()
            loss = self.loss(self.module)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        self.module.load_state_dict(before)
        self.module.zero_grad()
        return torch.stack(losses)

    @stage
    def compile(self):
        """The compiled network has the same values and gradients as the network."""
        torch._dynamo.reset()
        compiled = compile_by(self.module)
        with torch.no_grad():
            values = self.call(compiled)
        self.loss(compiled).backward()
        gradients = gradients_of(self.module)
        self.module.zero_grad()
        return [*values, gradients]

    @stage
    def save_and_load(self):
        with tempfile.TemporaryDirectory() as folder:
            torch.save(self.module.state_dict(), Path(folder) / "weights.pt")
            again = self.make().eval()
            again.load_state_dict(torch.load(Path(folder) / "weights.pt"))
        with torch.no_grad():
            return self.call(again)


def gradients_of(module) -> torch.Tensor:
    """The norm of each parameter's gradient."""
    return torch.stack([p.grad.float().norm() for p in module.parameters() if p.grad is not None])


def compile_by(module):
    """`torch.compile`. Over PyTorch itself it runs without code generation, because only reference values are needed."""
    return torch.compile(module) if "rushlight" in torch.__version__ else torch.compile(module, backend="eager")


def made_weights(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Values for every parameter, determined by its name and sizes alone."""
    return {name: _made(name, parameter) for name, parameter in module.named_parameters()}


def _made(name: str, parameter: torch.Tensor) -> torch.Tensor:
    generator = np.random.RandomState(zlib.crc32(name.encode()))
    numbers = generator.standard_normal(tuple(parameter.shape)).astype(np.float32)
    if parameter.dim() > 1:
        fan_in = parameter[0].numel()
        return torch.from_numpy(numbers / np.float32(max(fan_in, 1) ** 0.5)).to(parameter.dtype)
    first = parameter.detach().reshape(-1)[:1]
    start = float(first) if bool((parameter == first).all()) else 0.0
    return torch.from_numpy(np.asarray(start + 0.1 * numbers, np.float32)).to(parameter.dtype)


def tensors_of(value: object) -> list[torch.Tensor]:
    """The tensors in a call's result, in order."""
    value = value.to_tuple() if hasattr(value, "to_tuple") else value
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [tensor for entry in value for tensor in tensors_of(entry)] if isinstance(value, list | tuple) else []


def ramp(*sizes: int, low: float = -1.0, high: float = 1.0) -> torch.Tensor:
    """A tensor for inputs, the same everywhere: a wave between `low` and `high`."""
    count = int(np.prod(sizes))
    wave = np.sin(np.arange(count, dtype=np.float64) * 0.7) * 0.5 + 0.5
    return torch.from_numpy((low + (high - low) * wave).astype(np.float32).reshape(sizes))
