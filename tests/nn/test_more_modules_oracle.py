"""Modules that PyTorch's module_db lacks: printed form, state, outputs, gradients and starting values against PyTorch."""

from __future__ import annotations

import pytest

from tests.nn.oracle import same

pytestmark = pytest.mark.oracle

IMAGE, VOLUME, ROW = (2, 4, 6, 6), (2, 4, 4, 4, 4), (2, 4, 8)
CASES = [
    ("Identity", (), {}, [ROW]),
    ("Flatten", (1, 2), {}, [IMAGE]),
    ("Unflatten", (1, (2, 2)), {}, [ROW]),
    ("Hardsigmoid", (), {}, [ROW]),
    ("RReLU", (0.1, 0.2), {}, [ROW]),
    ("PReLU", (4,), {"init": 0.1}, [ROW]),
    ("Dropout", (0.4,), {}, [ROW]),
    ("Dropout1d", (0.4,), {}, [ROW]),
    ("Dropout2d", (0.4,), {}, [IMAGE]),
    ("Dropout3d", (0.4,), {"inplace": False}, [VOLUME]),
    ("AlphaDropout", (0.4,), {}, [ROW]),
    ("FeatureAlphaDropout", (0.4,), {}, [ROW]),
    ("PixelShuffle", (2,), {}, [IMAGE]),
    ("PixelUnshuffle", (2,), {}, [IMAGE]),
    ("ChannelShuffle", (2,), {}, [IMAGE]),
    ("Unfold", ((2, 3),), {"stride": 2, "padding": 1}, [IMAGE]),
    ("Fold", ((3, 4), (2, 2)), {}, [(2, 4, 6)]),
    ("Upsample", (), {"scale_factor": 2}, [ROW]),
    ("Upsample", (), {"size": (4, 9), "mode": "bilinear"}, [IMAGE]),
    ("Upsample", (), {"scale_factor": (2, 1.5), "mode": "bicubic", "align_corners": True}, [IMAGE]),
    ("Upsample", (), {"scale_factor": 2, "mode": "trilinear"}, [VOLUME]),
    ("UpsamplingNearest2d", (), {"scale_factor": 2}, [IMAGE]),
    ("UpsamplingBilinear2d", ((3, 4),), {}, [IMAGE]),
    ("CosineSimilarity", (), {"dim": 1}, [ROW, ROW]),
    ("PairwiseDistance", (), {"p": 1, "keepdim": True}, [(3, 4), (3, 4)]),
    ("TripletMarginLoss", (), {"swap": True}, [(3, 4)] * 3),
    ("TripletMarginWithDistanceLoss", (), {}, [(3, 4)] * 3),
    ("CrossMapLRN2d", (4,), {"k": 2.0}, [IMAGE]),
    ("LazyLinear", (3,), {}, [ROW]),
    ("LazyBatchNorm1d", (), {}, [ROW]),
    ("LazyBatchNorm2d", (), {"affine": False}, [IMAGE]),
    ("LazyBatchNorm3d", (), {"track_running_stats": False}, [VOLUME]),
    ("LazyInstanceNorm1d", (), {}, [ROW]),
    ("LazyInstanceNorm2d", (), {}, [IMAGE]),
    ("LazyInstanceNorm3d", (), {}, [VOLUME]),
    ("MultiheadAttention", (4, 2), {"kdim": 3, "vdim": 5, "add_bias_kv": True}, [(3, 2, 4), (5, 2, 3), (5, 2, 5)]),
    ("MultiheadAttention", (4, 2), {"dropout": 0.5, "batch_first": True, "add_zero_attn": True}, [(3, 2, 4)] * 3),
    ("TransformerDecoderLayer", (4, 2, 8), {"norm_first": True}, [(3, 2, 4), (5, 2, 4)]),
]


@pytest.mark.parametrize(("name", "args", "options", "shapes"), CASES)
def test_module(name, args, options, shapes):
    def use(torch):
        module = getattr(torch.nn, name)(*args, **options)
        found = [repr(module)]
        inputs = [torch.randn(*shape, requires_grad=True) for shape in shapes]
        for mode in (True, False):
            outputs = module.train(mode)(*inputs)
            outputs = [output for output in outputs if output is not None] if isinstance(outputs, tuple) else [outputs]
            sum(output.pow(2).sum() for output in outputs).backward()
            found.append([*outputs, *(parameter.grad for parameter in module.parameters())])
        # The gradient of CrossMapLRN2d in torch leaves out what its window adds.
        grads = [] if name == "CrossMapLRN2d" else [tensor.grad for tensor in inputs]
        return [*found, grads, repr(module), module.state_dict()]

    same(use, rtol=1e-4, atol=3e-5)  # of gradients of normalisation, which are sums that cancel


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding_idx", [None, 2])
@pytest.mark.parametrize("last", [False, True])
def test_embedding_bag(mode, padding_idx, last):
    def use(torch):
        bag = torch.nn.EmbeddingBag(6, 3, mode=mode, padding_idx=padding_idx, include_last_offset=last, max_norm=1.5)
        flat, offsets = torch.tensor([0, 2, 2, 5, 1, 4, 3]), torch.tensor([0, 3, 3, 7] if last else [0, 3, 3, 5])
        outputs = [bag(flat, offsets), bag(torch.tensor([[0, 1, 2], [2, 2, 5]]))]
        if mode == "sum":
            outputs.append(bag(flat, offsets, per_sample_weights=torch.arange(7.0)))
        sum(output.pow(2).sum() for output in outputs).backward()
        return [repr(bag), outputs, bag.weight.grad, bag.weight]

    same(use, atol=1e-5)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_unpooling(dims):
    def use(torch):
        pool = getattr(torch.nn, f"MaxPool{dims}d")(2, stride=2, return_indices=True)
        unpool = getattr(torch.nn, f"MaxUnpool{dims}d")(2, stride=2)
        x = torch.randn(2, 3, *[5] * dims, requires_grad=True)
        y = unpool(*pool(x), output_size=x.shape)
        (y * y).sum().backward()
        return [y, x.grad, repr(unpool)]

    same(use)


def test_adaptive_log_softmax():
    def use(torch):
        module = torch.nn.AdaptiveLogSoftmaxWithLoss(16, 20, [4, 10], div_value=2.0, head_bias=True)
        x = torch.randn(6, 16, requires_grad=True)
        output, loss = module(x, torch.tensor([0, 3, 5, 12, 19, 7]))
        loss.backward()
        single = module(x[0], torch.tensor(11)).output
        return [output, loss, x.grad, single, module.log_prob(x), module.predict(x), repr(module), module.state_dict()]

    same(use)


def test_lazy_modules_take_their_sizes_from_a_state_dict():
    def use(torch):
        full, lazy = torch.nn.Conv2d(3, 4, 2), torch.nn.LazyConv2d(4, 2)
        uninitialized = [repr(lazy), lazy.has_uninitialized_params(), list(lazy.state_dict())]
        lazy.load_state_dict(full.state_dict())
        output = lazy(torch.ones(1, 3, 4, 4))
        return [uninitialized, output, type(lazy).__name__, lazy.weight, repr(lazy)]

    same(use)


def test_uninitialized_parameters_have_no_shape():
    def use(torch):
        lazy = torch.nn.LazyLinear(2)
        errors = []
        for action in (lambda: lazy.weight.shape, lambda: torch.nn.Linear(1, 2).load_state_dict(lazy.state_dict())):
            with pytest.raises(RuntimeError):
                action()
            errors.append(True)
        lazy.double()
        return [errors, str(lazy.weight.dtype), lazy(torch.ones(1, 3).double())]

    same(use)


def test_grid_sample_and_affine_grid():
    def use(torch):
        functional = torch.nn.functional
        theta = torch.tensor([[[0.8, 0.1, 0.2], [-0.2, 0.9, 0.1]]], requires_grad=True)
        x = torch.randn(1, 2, 5, 5, requires_grad=True)
        results = []
        for align_corners in (False, True):
            grid = functional.affine_grid(theta, [1, 2, 4, 3], align_corners=align_corners)
            results += [grid, functional.grid_sample(x, grid, align_corners=align_corners)]
        sum(result.pow(2).sum() for result in results).backward()
        return [results, theta.grad, x.grad]

    same(use)


def test_conv_tbc_and_pdist():
    def use(torch):
        functional = torch.nn.functional
        x, w, b = torch.randn(7, 2, 3), torch.randn(3, 3, 4), torch.randn(4)
        return [functional.conv_tbc(x, w, b, 1), functional.pdist(torch.randn(5, 3), 1.0), functional.pdist(torch.randn(5, 3))]

    same(use)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_gradients_of_convolutions_as_functions(dims):
    def use(torch):
        x, weight = torch.randn(2, 4, *[6] * dims), torch.randn(6, 2, *[3] * dims)
        options = {"stride": 2, "padding": 1, "groups": 2}
        grad = torch.randn(2, 6, *[3] * dims)
        return [
            getattr(torch.nn.grad, f"conv{dims}d_input")(x.shape, weight, grad, **options),
            getattr(torch.nn.grad, f"conv{dims}d_weight")(x, weight.shape, grad, **options),
        ]

    same(use, rtol=1e-4, atol=1e-4)
