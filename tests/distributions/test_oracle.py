"""All families against PyTorch: densities, moments, entropies, draws of the same seed, expansion, KL divergences."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
import rushlight.distributions
from tests.distributions.cases import CASES, make

# PyTorch's GeneralizedPareto computes densities in float32 only.
SINGLE = {"GeneralizedPareto"}
torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

# Own algorithms draw the first two; the others use kernels in which torch's numbers depend on the maker of the CPU.
OTHER_NUMBERS = {"VonMises", "Wishart", "Exponential", "Weibull", "Pareto", "Bernoulli", "Bernoulli_logits"}


def outcome(call):
    """The value as NumPy, or the type of the error."""
    try:
        value = call()
    except (NotImplementedError, AttributeError) as error:
        return type(error)
    return value.detach().numpy() if hasattr(value, "detach") else value


def compare(ours, theirs, rtol=1e-6, atol=1e-8):
    if isinstance(theirs, type):
        assert ours is theirs
        return
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
    np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("attribute", ["mean", "mode", "variance", "stddev", "entropy"])
def test_moments(name, attribute):
    def read(library):
        value = getattr(make(name, library), attribute)
        return value() if callable(value) else value

    # PyTorch gives NaN where both concentrations exceed 1, for which the mode exists.
    if attribute == "mode" and name == "Kumaraswamy":
        return
    compare(outcome(lambda: read(rushlight)), outcome(lambda: read(torch)))


@pytest.mark.parametrize("name", CASES)
def test_shapes_and_texts(name):
    ours, theirs = make(name, rushlight), make(name, torch)
    assert tuple(ours.batch_shape) == tuple(theirs.batch_shape) and tuple(ours.event_shape) == tuple(theirs.event_shape)
    assert repr(ours) == repr(theirs)
    assert ours.has_rsample == theirs.has_rsample and ours.has_enumerate_support == theirs.has_enumerate_support
    assert repr(ours.support) == repr(theirs.support)
    assert ours.support.event_dim == theirs.support.event_dim
    assert repr(ours.arg_constraints) == repr(theirs.arg_constraints)


@pytest.mark.parametrize("name", CASES)
def test_densities_and_their_gradients(name):
    if name in SINGLE:
        return
    theirs = make(name, torch)
    torch.manual_seed(0)
    value = theirs.sample((4,))
    for method in ("log_prob", "cdf"):
        results = []
        for library in (rushlight, torch):
            at = library.tensor(value.numpy())
            distribution = make(name, library)
            results.append(outcome(lambda at=at, d=distribution, m=method: getattr(d, m)(at)))
        compare(*results)
        if not isinstance(results[1], type) and value.is_floating_point():
            slopes = []
            for library in (rushlight, torch):
                at = library.tensor(value.numpy()).requires_grad_()
                result = getattr(make(name, library), method)(at).sum()
                if result.requires_grad:
                    result.backward()
                    slopes.append(at.grad.numpy())
            if name not in ("Wishart", "OneHotCategorical", "OneHotCategoricalStraightThrough") and len(slopes) == 2:
                compare(*slopes)


@pytest.mark.parametrize("name", CASES)
def test_inverse_cdf_and_enumeration(name):
    def inverse(library):
        return outcome(lambda: make(name, library).icdf(library.tensor([0.2, 0.7], dtype=library.float64)))

    if name != "Independent" and len(make(name, torch).event_shape) == 0:
        compare(inverse(rushlight), inverse(torch))
    for expand in (True, False):
        values = [outcome(lambda lib=lib, e=expand: make(name, lib).enumerate_support(e)) for lib in (rushlight, torch)]
        compare(*values)


@pytest.mark.parametrize("name", CASES)
def test_draws(name):
    rushlight.manual_seed(5)
    torch.manual_seed(5)
    ours, theirs = make(name, rushlight).sample((3,)), make(name, torch).sample((3,))
    assert tuple(ours.shape) == tuple(theirs.shape) and str(ours.dtype) == str(theirs.dtype)
    if name not in OTHER_NUMBERS:
        compare(ours.numpy(), theirs.numpy())
        assert rushlight.rand(1).item() == torch.rand(1).item()


@pytest.mark.parametrize("name", CASES)
def test_expansion(name):
    if name in SINGLE:
        return
    batch = make(name, torch).batch_shape
    ours, theirs = make(name, rushlight).expand((3, *batch)), make(name, torch).expand((3, *batch))
    assert tuple(ours.batch_shape) == tuple(theirs.batch_shape) and tuple(ours.event_shape) == tuple(theirs.event_shape)
    value = make(name, torch).sample((3,))
    compare(ours.log_prob(rushlight.tensor(value.numpy())).numpy(), theirs.log_prob(value).numpy())
    assert tuple(ours.sample((2,)).shape) == tuple(theirs.sample((2,)).shape)


@pytest.mark.parametrize(
    "family, values",
    [
        ("Normal", (0.5, 2.0)), ("Gamma", (0.7, 2.0)), ("Beta", (0.7, 2.0)), ("StudentT", (3.0, 0.5, 2.0)), ("Chi2", (3.0,)),
        ("Laplace", (0.5, 2.0)), ("Cauchy", (0.5, 2.0)), ("Uniform", (0.5, 2.0)), ("Gumbel", (0.5, 2.0)),
        ("LogNormal", (0.5, 0.7)), ("Kumaraswamy", (1.5, 2.0)), ("FisherSnedecor", (3.0, 5.0)), ("InverseGamma", (3.0, 2.0)),
        ("ContinuousBernoulli", (0.3,)), ("HalfNormal", (2.0,)), ("GeneralizedPareto", (0.5, 2.0, 0.3)),
    ],
)  # fmt: skip
def test_gradients_of_draws(family, values):
    slopes = []
    for library in (rushlight, torch):
        library.manual_seed(3)
        parameters = [library.tensor([value] * 5, dtype=library.float64, requires_grad=True) for value in values]
        getattr(library.distributions, family)(*parameters).rsample().square().sum().backward()
        slopes.append([parameter.grad.numpy() for parameter in parameters])
    for mine, other in zip(*slopes, strict=True):
        compare(mine, other, rtol=2e-3)


def test_all_divergences():
    pairs = 0
    for first in CASES:
        for second in CASES:
            results = []
            for library in (rushlight, torch):
                p, q = make(first, library), make(second, library)
                results.append(outcome(lambda lib=library, p=p, q=q: lib.distributions.kl_divergence(p, q)))
            if isinstance(results[1], type):
                assert results[0] is results[1], (first, second, results)
                continue
            # PyTorch sums this one over the batch, too.
            if first == second == "Wishart":
                continue
            np.testing.assert_allclose(*results, rtol=1e-6, atol=1e-8, err_msg=f"{first} {second}")
            pairs += 1
    assert pairs > 80


def test_generalized_pareto_in_float32():
    values, results = [1.2, 2.5], []
    for library in (rushlight, torch):
        distribution = make("GeneralizedPareto", library, library.float32)
        value = library.tensor(values)
        results.append([getattr(distribution, method)(value).numpy() for method in ("log_prob", "cdf")])
    np.testing.assert_allclose(*results, rtol=1e-5)


BAD_USE = {
    "scale": lambda d, t: d.Normal(t([0.0, 0.0]), t([-1.0, 1.0])),
    "shape": lambda d, t: d.Normal(t([0.0, 0.0]), t([1.0, 1.0])).log_prob(t([1.0, 2.0, 3.0])),
    "number": lambda d, t: d.Normal(0.0, 1.0).log_prob(0.0),
    "support": lambda d, t: d.Bernoulli(t(0.5)).log_prob(t(2.0)),
    "one_hot": lambda d, t: d.OneHotCategorical(t([0.5, 0.5])).log_prob(t([0.5, 0.5])),
    "neither": lambda d, t: d.Bernoulli(),
    "both": lambda d, t: d.Categorical(t([0.5]), t([0.5])),
    "scalar": lambda d, t: d.Categorical(t(0.5)),
    "simplex": lambda d, t: d.Categorical(t([0.5, -0.1])),
    "count": lambda d, t: d.Multinomial(2.5, t([0.5, 0.5])),
    "dirichlet": lambda d, t: d.Dirichlet(t(1.0)),
    "mvn_loc": lambda d, t: d.MultivariateNormal(t(1.0)),
    "mvn_none": lambda d, t: d.MultivariateNormal(t([0.0, 0.0])),
    "mvn_vector": lambda d, t: d.MultivariateNormal(t([0.0, 0.0]), t(1.0)),
    "mvn_negative": lambda d, t: d.MultivariateNormal(t([0.0, 0.0]), t([[-1.0, 0.0], [0.0, -1.0]])),
    "low_rank": lambda d, t: d.LowRankMultivariateNormal(t([0.0, 0.0]), t([[1.0], [1.0]]), t([1.0, 1.0, 1.0])),
    "uniform": lambda d, t: d.Uniform(1.0, 0.0),
    "independent": lambda d, t: d.Independent(d.Normal(t([0.0]), t([1.0])), 2),
    "transforms": lambda d, t: d.TransformedDistribution(d.Normal(0.0, 1.0), 3),
    "transform": lambda d, t: d.TransformedDistribution(d.Normal(0.0, 1.0), [3]),
    "event": lambda d, t: d.TransformedDistribution(d.Normal(0.0, 1.0), [d.StickBreakingTransform()]),
    "mixture": lambda d, t: d.MixtureSameFamily(d.Categorical(t([1.0, 1.0, 1.0])), d.Normal(t([0.0, 0.0]), t([1.0, 1.0]))),
    "component": lambda d, t: d.MixtureSameFamily(d.Categorical(t([1.0, 1.0])), 3),
    "lkj": lambda d, t: d.LKJCholesky(1),
    "wishart": lambda d, t: d.Wishart(t(1.0), t([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])),
    "geometric": lambda d, t: d.Geometric(t(0.0)),
    "text": lambda d, t: d.Normal("a", 1),
    "cache": lambda d, t: d.ExpTransform().with_cache(2),
    "bijection": lambda d, t: d.biject_to(d.constraints.symmetric),
    "dependent": lambda d, t: d.transform_to(d.constraints.dependent),
    "registry": lambda d, t: d.transform_to.register(3, 3),
    "reshape": lambda d, t: d.ReshapeTransform((2,), (3,)),
    "enumerate": lambda d, t: d.Independent(d.Bernoulli(t([0.2])), 1).enumerate_support(),
    "binomial": lambda d, t: d.Binomial(t([2.0, 3.0]), t([0.5, 0.5])).enumerate_support(),
}


@pytest.mark.parametrize("name", BAD_USE)
def test_errors(name, monkeypatch):
    monkeypatch.setattr(torch.distributions.Distribution, "_validate_args", True)  # torch.compile turns it off for the process
    errors = []
    for library in (rushlight, torch):
        with pytest.raises(Exception) as raised:
            BAD_USE[name](library.distributions, library.tensor)
        errors.append((type(raised.value), " ".join(str(raised.value).split())))
    assert errors[0] == errors[1]


TRANSFORMS = {
    "Abs": (lambda d, t: d.AbsTransform(), [0.5, -2.0]),
    "Affine": (lambda d, t: d.AffineTransform(t(1.0), t([-2.0, 0.5]), event_dim=1), [0.5, -2.0]),
    "Cat": (lambda d, t: d.CatTransform([d.ExpTransform(), d.identity_transform], -1, [1, 2]), [0.5, -2.0, 1.0]),
    "Compose": (lambda d, t: d.ComposeTransform([d.AffineTransform(1.0, 2.0), d.StickBreakingTransform()]), [0.5, -2.0]),
    "CorrCholesky": (lambda d, t: d.CorrCholeskyTransform(), [0.5, -2.0, 0.3, 0.2, 0.1, -0.4]),
    "Cumulative": (lambda d, t: d.CumulativeDistributionTransform(d.Normal(t(0.5), t(2.0))), [0.5, -2.0]),
    "Exp": (lambda d, t: d.ExpTransform(), [0.5, -2.0]),
    "Independent": (lambda d, t: d.IndependentTransform(d.ExpTransform(), 1), [0.5, -2.0]),
    "LowerCholesky": (lambda d, t: d.LowerCholeskyTransform(), [[0.5, -2.0], [0.3, 0.2]]),
    "PositiveDefinite": (lambda d, t: d.PositiveDefiniteTransform(), [[0.5, -2.0], [0.3, 0.2]]),
    "Power": (lambda d, t: d.PowerTransform(t([2.0, -0.5])), [0.5, 2.0]),
    "Reshape": (lambda d, t: d.ReshapeTransform((4,), (2, 2)), [0.5, -2.0, 0.3, 0.2]),
    "Sigmoid": (lambda d, t: d.SigmoidTransform(), [0.5, -2.0]),
    "Softmax": (lambda d, t: d.SoftmaxTransform(), [0.5, -2.0]),
    "Softplus": (lambda d, t: d.SoftplusTransform(), [0.5, -2.0]),
    "Stack": (lambda d, t: d.StackTransform([d.ExpTransform(), d.SigmoidTransform()]), [[0.5, -2.0], [0.3, 0.2]]),
    "StickBreaking": (lambda d, t: d.StickBreakingTransform(), [0.5, -2.0, 1.0]),
    "Tanh": (lambda d, t: d.TanhTransform(), [0.5, -2.0]),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name):
    build, values = TRANSFORMS[name]
    results = []
    for library in (rushlight, torch):
        d = library.distributions
        x = library.tensor(values, dtype=library.float64)
        transform = build(d, lambda numbers, library=library: library.tensor(numbers, dtype=library.float64))
        y = transform(x)
        slope = outcome(lambda transform=transform, x=x, y=y: transform.log_abs_det_jacobian(x, y))
        shapes = tuple(transform.forward_shape(x.shape)), tuple(transform.inverse_shape(y.shape))
        facts = repr(transform), repr(transform.domain), repr(transform.codomain), transform.bijective, shapes
        results.append((y.numpy(), transform.inv(y).numpy(), slope, facts))
    for mine, other in zip(results[0][:3], results[1][:3], strict=True):
        compare(mine, other, rtol=1e-6)
    assert results[0][3] == results[1][3]
