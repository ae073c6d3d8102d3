"""Whole training steps under each optimizer: `python -m benchmarks.optimizers [model,...]`.

CPU time on one thread, in microseconds, the best of some turns that alternate: a step in eager and compiled, beside torch in
eager, and the update alone. With busy neighbours CPU time says more than the clock does.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import ModuleType

import numpy as np
import torch

import rushlight

TURNS = 7
SAMPLE = 0.02  # seconds, about, of calls in one sample

OPTIMIZERS = {
    "SGD": {"lr": 0.01, "momentum": 0.9}, "Adam": {}, "AdamW": {}, "RMSprop": {"lr": 1e-3, "momentum": 0.9, "centered": True},
    "Adagrad": {}, "Adadelta": {}, "Adamax": {}, "NAdam": {}, "RAdam": {}, "ASGD": {}, "Rprop": {"lr": 1e-4}, "Adafactor": {},
    "Muon": {},
}  # fmt: skip


def perceptron(torch: ModuleType) -> Callable:
    nn = torch.nn
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


def transformer(torch: ModuleType) -> Callable:
    nn = torch.nn

    class Classifier(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(100, 64)
            layers = [nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True) for _ in range(6)]
            self.layers, self.head = nn.Sequential(*layers), nn.Linear(64, 10)

        def forward(self, tokens):
            return self.head(self.layers(self.embedding(tokens)).mean(1))

    return Classifier()


def pictures(generator: np.random.Generator) -> np.ndarray:
    return generator.standard_normal((64, 784), np.float32)


def sentences(generator: np.random.Generator) -> np.ndarray:
    return generator.integers(0, 100, size=(4, 32))


MODELS = {"perceptron": (perceptron, pictures), "transformer": (transformer, sentences)}


def training_step(torch: ModuleType, name: str, kind: str) -> tuple[Callable, Callable, tuple]:
    """A step, the update alone, and the step's inputs."""
    torch.manual_seed(0)
    build, inputs = MODELS[name]
    model, generator = build(torch), np.random.default_rng(0)
    parameters = [parameter for parameter in model.parameters() if kind != "Muon" or parameter.dim() == 2]
    optimizer = getattr(torch.optim, kind)(parameters, **OPTIMIZERS[kind])
    x = inputs(generator)
    y = generator.integers(0, 10, size=len(x))

    def step(x, y):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step, optimizer.step, (torch.from_numpy(x), torch.from_numpy(y))


def best_times(calls: list[Callable]) -> list[float]:
    """Microseconds of CPU time per call, at best."""
    best = [float("inf")] * len(calls)
    for call in calls * 3:
        call()
    for _ in range(TURNS):
        for index, call in enumerate(calls):
            repeats = max(1, int(SAMPLE / best[index])) if best[index] < 1 else 1
            start = time.process_time()
            for _ in range(repeats):
                call()
            best[index] = min(best[index], (time.process_time() - start) / repeats)
    return [seconds * 1e6 for seconds in best]


def measure(name: str, kind: str, ours: ModuleType, theirs: ModuleType) -> list[float]:
    """A step of ours in eager, compiled, of torch; the updates of both."""
    plain, update, given = training_step(ours, name, kind)
    compiled = ours.compile(training_step(ours, name, kind)[0])
    reference, their_update, their_given = training_step(theirs, name, kind)
    return best_times([
        lambda: plain(*given), lambda: compiled(*given), lambda: reference(*their_given), update, their_update,
    ])  # fmt: skip


def main(names: list[str]) -> None:
    rushlight.set_num_threads(1)
    torch.set_num_threads(1)
    for name in names or MODELS:
        print(f"{name:13}{'eager':>9}{'compiled':>9}{'torch':>9}{'ratio':>7}{'update':>10}{'torch':>9}{'ratio':>7}")
        for kind in OPTIMIZERS:
            eager, compiled, reference, update, other = measure(name, kind, rushlight, torch)
            steps = f"{eager:9.0f}{compiled:9.0f}{reference:9.0f}{compiled / reference:7.2f}"
            print(f"  {kind:11}{steps}{update:10.0f}{other:9.0f}{update / other:7.2f}", flush=True)


if __name__ == "__main__":
    main([name for argument in sys.argv[1:] for name in argument.split(",")])
