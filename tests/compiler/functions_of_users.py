"""Custom autograd functions, as user programs write them, for Rushlight and for PyTorch. `make(torch)` gives programs of two
tensors of one shape, by name."""

from __future__ import annotations

from types import ModuleType


def make(torch: ModuleType) -> dict:
    """Programs by name."""
    Function = torch.autograd.Function  # noqa: N806
    once_differentiable = torch.autograd.function.once_differentiable

    class Swish(Function):
        @staticmethod
        def forward(ctx, x):
            s = torch.sigmoid(x)
            ctx.save_for_backward(x, s)
            return x * s

        @staticmethod
        def backward(ctx, grad):
            x, s = ctx.saved_tensors
            return grad * (s + x * s * (1 - s))

    class RoundThrough(Function):
        @staticmethod
        def forward(ctx, x):
            return x.round()

        @staticmethod
        def backward(ctx, grad):
            return grad

    class Reverse(Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.factor = factor
            return x.view_as(x)

        @staticmethod
        def backward(ctx, grad):
            return -ctx.factor * grad, None

    class PassOn(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad.clamp(-0.5, 0.5)

    class Scaled(Function):
        @staticmethod
        def forward(x, y, scale=3.0):
            return x * y * scale

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, y, ctx.scale = inputs
            ctx.save_for_backward(x, y)

        @staticmethod
        def backward(ctx, grad):
            x, y = ctx.saved_tensors
            return grad * y * ctx.scale, grad * x * ctx.scale, None

    class Exponential(Function):
        @staticmethod
        def forward(ctx, x):
            result = x.exp()
            ctx.save_for_backward(result)
            return result

        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            (result,) = ctx.saved_tensors
            return grad * result * 2

    class SortedWithPlaces(Function):
        @staticmethod
        def forward(ctx, x):
            values, places = x.sort(dim=-1)
            ctx.mark_non_differentiable(places)
            ctx.save_for_backward(places)
            return values, places

        @staticmethod
        def backward(ctx, grad, _):
            (places,) = ctx.saved_tensors
            return torch.zeros_like(grad).scatter(-1, places, grad)

    class Both(Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.set_materialize_grads(False)
            ctx.save_for_backward(x, y)
            return x * 2, y * 3

        @staticmethod
        def backward(ctx, one, other):
            x, y = ctx.saved_tensors
            return None if one is None else one * x, None if other is None else other * y.cos()

    class Product(Function):
        @staticmethod
        def forward(ctx, x, weight):
            ctx.save_for_backward(x if ctx.needs_input_grad[1] else None, weight)
            ctx.shape = x.shape
            return x.mm(weight.t())

        @staticmethod
        def backward(ctx, grad):
            x, weight = ctx.saved_tensors
            grads = [None, None]
            if ctx.needs_input_grad[0]:
                grads[0] = grad.mm(weight).reshape(ctx.shape)
            if ctx.needs_input_grad[1]:
                grads[1] = grad.t().mm(x)
            return tuple(grads)

    class Doubled(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            x.mul_(2)
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 5

    class Nested(Function):
        @staticmethod
        def forward(ctx, x):
            y = Swish.apply(x)
            ctx.y = y
            return RoundThrough.apply(y * 4) / 4

        @staticmethod
        def backward(ctx, grad):
            return PassOn.apply(grad) * ctx.y

    class CrossEntropy(Function):
        @staticmethod
        def forward(ctx, logits, labels):
            probabilities = logits.softmax(-1)
            ctx.save_for_backward(probabilities, labels)
            return -probabilities.gather(-1, labels[:, None]).log().mean()

        @staticmethod
        def backward(ctx, grad):
            probabilities, labels = ctx.saved_tensors
            hot = torch.zeros_like(probabilities).scatter_(-1, labels[:, None], 1.0)
            return grad * (probabilities - hot) / len(labels), None

    class LayerNorm(Function):
        @staticmethod
        def forward(ctx, x, weight, eps=1e-5):
            mean = x.mean(-1, keepdim=True)
            rstd = ((x - mean).pow(2).mean(-1, keepdim=True) + eps).rsqrt()
            normal = (x - mean) * rstd
            ctx.save_for_backward(normal, rstd, weight)
            return normal * weight

        @staticmethod
        def backward(ctx, grad):
            normal, rstd, weight = ctx.saved_tensors
            inner = grad * weight
            to_x = rstd * (inner - inner.mean(-1, keepdim=True) - normal * (inner * normal).mean(-1, keepdim=True))
            return to_x, (grad * normal).sum(0), None

    class Listed(Function):
        @staticmethod
        def forward(ctx, count, *tensors):
            ctx.count = count
            ctx.save_for_backward(*tensors)
            return tuple(tensor * (index + count) for index, tensor in enumerate(tensors))

        @staticmethod
        def backward(ctx, *grads):
            found = []
            for index, (grad, tensor) in enumerate(zip(grads, ctx.saved_tensors)):  # noqa: B905
                found.append(grad * tensor * (index + ctx.count))
            return (None, *found)

    class OneInputOnly(Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, grad):
            return grad * 7, None

    class Cast(Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu")
        def forward(ctx, x, weight):
            ctx.save_for_backward(x, weight)
            return x.mm(weight.t())

        @staticmethod
        @torch.amp.custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            x, weight = ctx.saved_tensors
            return grad.mm(weight), grad.t().mm(x)

    def under_autocast(a, b):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return Cast.apply(a, b).float()

    labels = torch.tensor([1, 0, 3, 2])
    return {
        "swish": lambda a, b: Swish.apply(a * b) * 2,
        "swish of an input": lambda a, b: Swish.apply(a) + b,
        "straight through": lambda a, b: RoundThrough.apply(a * 3) * b,
        "gradient reversal": lambda a, b: Reverse.apply(a, 0.5) * b,
        "gradient reversal, returned": lambda a, b: (Reverse.apply(a * b, 2.0), a + 1),
        "gradient reversal of an input, returned": lambda a, b: (Reverse.apply(a, 2.0), b * 2),
        "an input passed on": lambda a, b: PassOn.apply(a) * b,
        "an input passed on, returned": lambda a, b: (PassOn.apply(a), b * 2),
        "a value passed on, used twice": lambda a, b: (lambda c: PassOn.apply(c) * 3 + c)(a * b),
        "setup_context": lambda a, b: Scaled.apply(a, b, 2.0).sin(),
        "a saved result": lambda a, b: Exponential.apply(a) * Exponential.apply(b * 0.5),
        "a result without gradient": lambda a, b: (lambda pair: (pair[0] * b, pair[1]))(SortedWithPlaces.apply(a)),
        "no materialized gradients": lambda a, b: Both.apply(a * 2, b),
        "no materialized gradients, one used": lambda a, b: Both.apply(a * 2, b)[1] + a,
        "needs_input_grad": lambda a, b: Product.apply(a, b).tanh(),
        "needs_input_grad, one": lambda a, b: Product.apply(a.detach(), b).tanh() + a.sum(),
        "in place": lambda a, b: (lambda c: Doubled.apply(c) * c + b)(a * b),
        "in place, result unused": lambda a, b: (lambda c: (Doubled.apply(c), c * b)[1])(a * b),
        "Functions in a Function": lambda a, b: Nested.apply(a) * b,
        "a loss": lambda a, b: CrossEntropy.apply(a * b, labels),
        "a norm": lambda a, b: LayerNorm.apply(a, b[0]) * 2,
        "many arguments": lambda a, b: Listed.apply(2, a, b * 2, a * b),
        "a gradient that is None": lambda a, b: OneInputOnly.apply(a, b) + b,
        "autocast": under_autocast,
        "one after the other": lambda a, b: Swish.apply(Swish.apply(Reverse.apply(a, 1.5)) @ b.t()),
        "views of results": lambda a, b: Swish.apply(a * b).t()[1:] * 2,
    }
