"""Training steps as workloads: forward, backward and an update by Adam, with random weights.

The step size is 0, so that every step does all the work and finds the same weights. What is compared is the loss, and the
slope of the loss along a fixed random direction by the gradients that the step left, with a difference quotient in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np

from benchmarks.encoder import linear, normalize
from benchmarks.workload import Arrays, Workload, error_function, in_float64

NUDGE = 1e-8
STEP_SIZE = 0.0
DECAYS = (0.9, 0.999)
EPSILON = 1e-8


class TrainingWorkload(Workload):
    """A step from inputs to the loss. Subclasses give inputs, weights, the loss as `array_function`, and the torch `model`."""

    trains = True

    def model(self, torch: ModuleType) -> Callable:
        """A module of the inputs that returns the loss; its state dict has the names of `weights`."""
        raise NotImplementedError

    def torch_function(self, torch: ModuleType, weights: Arrays) -> Callable:
        model = self.model(torch)
        model.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
        optimizer = torch.optim.Adam(model.parameters(), lr=STEP_SIZE, betas=DECAYS, eps=EPSILON)

        def step(*inputs):
            optimizer.zero_grad()
            loss = model(*inputs)
            loss.backward()
            optimizer.step()
            return loss

        self.gradients = lambda: {name: value.grad.numpy() for name, value in model.named_parameters()}
        return step

    def jax_function(self, jax: ModuleType, weights: Arrays) -> Callable:
        differentiate = jax.value_and_grad(lambda weights, *inputs: self.array_function(jax.numpy, weights)(*inputs))

        def step(state, *inputs):
            weights, means, squares, count, rate = state
            loss, gradients = differentiate(weights, *inputs)
            count = count + 1
            means = jax.tree.map(lambda old, new: DECAYS[0] * old + (1 - DECAYS[0]) * new, means, gradients)
            squares = jax.tree.map(lambda old, new: DECAYS[1] * old + (1 - DECAYS[1]) * new * new, squares, gradients)
            sizes = 1 - DECAYS[0] ** count, 1 - DECAYS[1] ** count
            weights = jax.tree.map(
                lambda old, mean, square: old - rate * (mean / sizes[0]) / (jax.numpy.sqrt(square / sizes[1]) + EPSILON),
                weights, means, squares,
            )  # fmt: skip
            return (weights, means, squares, count, rate), loss, gradients

        compiled = jax.jit(step, donate_argnums=0)
        zeros = jax.tree.map(jax.numpy.zeros_like, weights)
        state = [jax.tree.map(jax.numpy.copy, (weights, zeros, zeros, jax.numpy.zeros(()), jax.numpy.array(STEP_SIZE)))]

        def run(*inputs):
            state[0], loss, gradients = compiled(state[0], *inputs)
            self.gradients = lambda: {name: np.asarray(value) for name, value in gradients.items()}
            return jax.block_until_ready((state[0], loss))[1]

        return run

    def collect(self, result: np.ndarray) -> np.ndarray:
        found = self.gradients()
        slope = sum(float((found[name].astype(np.float64) * part).sum()) for name, part in self._direction().items())
        return np.array([float(result), slope])

    def reference(self, inputs: Arrays, weights: Arrays) -> np.ndarray:
        exact, direction = {name: in_float64(array) for name, array in weights.items()}, self._direction()

        def loss(move: float) -> float:
            moved = {name: array + move * direction[name] for name, array in exact.items()}
            return float(self.array_function(np, moved)(*map(in_float64, inputs.values())))

        return np.array([loss(0.0), (loss(NUDGE) - loss(-NUDGE)) / (2 * NUDGE)])

    def _direction(self) -> Arrays:
        generator = np.random.default_rng(1)
        return {name: generator.standard_normal(array.shape) for name, array in self.weights().items()}


def dense(generator: np.random.Generator, name: str, outputs: int, inputs: int) -> Arrays:
    """The weights of a linear layer as PyTorch draws them."""
    bound = inputs**-0.5
    return {
        f"{name}.weight": generator.uniform(-bound, bound, (outputs, inputs)).astype(np.float32),
        f"{name}.bias": generator.uniform(-bound, bound, outputs).astype(np.float32),
    }


def cross_entropy(xp: ModuleType, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The mean over rows."""
    shifted = scores - scores.max(-1, keepdims=True)
    return (xp.log(xp.exp(shifted).sum(-1)) - xp.take_along_axis(shifted, labels[:, None], 1)[:, 0]).mean()


class PerceptronTraining(TrainingWorkload):
    """Layers of `sizes` with ReLU between, on `batch` rows."""

    def __init__(self, name: str, title: str, sizes: tuple[int, ...], batch: int) -> None:
        super().__init__(name, title, tolerance=2e-5)
        self.sizes, self.batch = sizes, batch

    def inputs(self) -> Arrays:
        generator = np.random.default_rng(0)
        rows = generator.standard_normal((self.batch, self.sizes[0]), np.float32)
        return {"rows": rows, "labels": generator.integers(0, self.sizes[-1], self.batch)}

    def weights(self) -> Arrays:
        generator, found = np.random.default_rng(0), {}
        for number, (inputs, outputs) in enumerate(zip(self.sizes, self.sizes[1:], strict=False)):
            found |= dense(generator, f"layers.{2 * number}", outputs, inputs)
        return found

    def array_function(self, xp: ModuleType, weights: Arrays) -> Callable:
        def loss(rows, labels):
            for number in range(len(self.sizes) - 1):
                rows = linear(weights, f"layers.{2 * number}", xp.maximum(rows, 0) if number else rows)
            return cross_entropy(xp, rows, labels)

        return loss

    def model(self, torch: ModuleType) -> Callable:
        nn, sizes = torch.nn, self.sizes

        class Model(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                pairs = zip(sizes, sizes[1:], strict=False)
                parts = [part for pair in pairs for part in (nn.Linear(*pair), nn.ReLU())]
                self.layers = nn.Sequential(*parts[:-1])

            def forward(self, rows, labels):
                return nn.functional.cross_entropy(self.layers(rows), labels)

        return Model()


class TransformerTraining(TrainingWorkload):
    """A causal language model: `layers` of attention and feed-forward, each behind a layer norm."""

    words, hidden, heads, batch, tokens = 1000, 256, 8, 8, 128

    def __init__(self, name: str, title: str, layers: int) -> None:
        super().__init__(name, title, tolerance=2e-4)
        self.layers = layers

    def inputs(self) -> Arrays:
        generator = np.random.default_rng(0)
        return {name: generator.integers(0, self.words, (self.batch, self.tokens)) for name in ("input_ids", "labels")}

    def weights(self) -> Arrays:
        generator, size = np.random.default_rng(0), self.hidden
        found = {
            f"{name}.weight": (generator.standard_normal((rows, size)) * 0.02).astype(np.float32)
            for name, rows in (("words", self.words), ("places", self.tokens))
        }
        norms = [f"blocks.{layer}.{norm}" for layer in range(self.layers) for norm in ("norm1", "norm2")]
        for name in (*norms, "norm"):
            found |= {f"{name}.weight": np.ones(size, np.float32), f"{name}.bias": np.zeros(size, np.float32)}
        for layer in range(self.layers):
            for part, outputs, inputs in (("together", 3, 1), ("out", 1, 1), ("wide", 4, 1), ("narrow", 1, 4)):
                found |= dense(generator, f"blocks.{layer}.{part}", outputs * size, inputs * size)
        return found | dense(generator, "head", self.words, size)

    def array_function(self, xp: ModuleType, weights: Arrays) -> Callable:
        erf = error_function(xp)
        ahead = xp.where(xp.tril(xp.ones((self.tokens, self.tokens))) > 0, 0.0, -xp.inf)

        def attend(hidden, name):
            shape = (self.batch, self.tokens, 3, self.heads, self.hidden // self.heads)
            query, key, value = linear(weights, f"{name}.together", hidden).reshape(shape).transpose(2, 0, 3, 1, 4)
            scores = query @ key.transpose(0, 1, 3, 2) / (self.hidden // self.heads) ** 0.5 + ahead
            powers = xp.exp(scores - scores.max(-1, keepdims=True))
            context = powers / powers.sum(-1, keepdims=True) @ value
            return linear(weights, f"{name}.out", context.transpose(0, 2, 1, 3).reshape(hidden.shape))

        def loss(input_ids, labels):
            hidden = weights["words.weight"][input_ids] + weights["places.weight"]
            for layer in range(self.layers):
                name = f"blocks.{layer}"
                hidden = hidden + attend(normalize(xp, weights, f"{name}.norm1", hidden), name)
                wide = linear(weights, f"{name}.wide", normalize(xp, weights, f"{name}.norm2", hidden))
                hidden = hidden + linear(weights, f"{name}.narrow", wide * 0.5 * (1.0 + erf(wide * 0.5**0.5)))
            scores = linear(weights, "head", normalize(xp, weights, "norm", hidden))
            return cross_entropy(xp, scores.reshape(-1, self.words), labels.reshape(-1))

        return loss

    def model(self, torch: ModuleType) -> Callable:
        nn, functional, workload = torch.nn, torch.nn.functional, self
        size = self.hidden

        class Block(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.norm1, self.norm2 = nn.LayerNorm(size, eps=1e-12), nn.LayerNorm(size, eps=1e-12)
                self.together, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)
                self.wide, self.narrow = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)

            def forward(self, hidden):
                batch, tokens, _ = hidden.shape
                shape = (batch, tokens, 3, workload.heads, size // workload.heads)
                parts = self.together(self.norm1(hidden)).view(shape).permute(2, 0, 3, 1, 4).unbind(0)
                context = functional.scaled_dot_product_attention(*parts, is_causal=True)
                hidden = hidden + self.out(context.transpose(1, 2).reshape(batch, tokens, size))
                return hidden + self.narrow(functional.gelu(self.wide(self.norm2(hidden))))

        class Model(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.words, self.places = nn.Embedding(workload.words, size), nn.Embedding(workload.tokens, size)
                self.blocks = nn.Sequential(*[Block() for _ in range(workload.layers)])
                self.norm, self.head = nn.LayerNorm(size, eps=1e-12), nn.Linear(size, workload.words)

            def forward(self, input_ids, labels):
                hidden = self.words(input_ids) + self.places.weight
                scores = self.head(self.norm(self.blocks(hidden)))
                return functional.cross_entropy(scores.flatten(0, 1), labels.flatten())

        return Model()


TRAINING_WORKLOADS = [
    PerceptronTraining("mlp_step", "Adam step of an MLP, 784-512-512-10, batch 64", (784, 512, 512, 10), 64),
    TransformerTraining("transformer_step", "Adam step of a transformer, 6 layers of 256, batch 8 x 128 tokens", 6),
]
