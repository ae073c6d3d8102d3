"""The names that transforms had as a package of their own."""

import pytest

import rushlight as torch
from rushlight._functorch import deprecated


@pytest.mark.parametrize("name", ["grad", "grad_and_value", "jacrev", "jacfwd", "hessian"])
def test_transforms_warn_and_work(name):
    x = torch.tensor(2.0)
    with pytest.warns(FutureWarning, match=f"Please use `torch.func.{name}`"):
        transformed = getattr(deprecated, name)(torch.sin)
    found, expected = transformed(x), getattr(torch.func, name)(torch.sin)(x)
    torch.testing.assert_close(found, expected)


def test_compiled_functions_use_the_old_names():
    def slope(x, y):
        return deprecated.grad(torch.mul)(x, y)

    x, y = torch.tensor(2.0), torch.tensor(5.0)
    with pytest.warns(FutureWarning):
        assert torch.compile(slope, backend="eager", fullgraph=True)(x, y).item() == 5.0


def test_modules_as_functions():
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3)).eval()
    x = torch.randn(4, 2)
    with pytest.warns(FutureWarning):
        call, parameters, buffers = deprecated.make_functional_with_buffers(model)
    assert torch.equal(call(parameters, buffers, x), model(x))
    assert parameters[0] is model[0].weight
    with pytest.warns(FutureWarning), pytest.raises(RuntimeError, match="has buffers"):
        deprecated.make_functional(model)
    with pytest.warns(FutureWarning):
        call, parameters = deprecated.make_functional(model[0], disable_autograd_tracking=True)
    assert torch.equal(call(parameters, x), model[0](x)) and not parameters[0].requires_grad


def test_ensembles():
    models = [torch.nn.Linear(2, 3) for _ in range(4)]
    with pytest.warns(FutureWarning):
        call, parameters, buffers = deprecated.combine_state_for_ensemble(models)
    x = torch.randn(5, 2)
    found = torch.vmap(call, in_dims=(0, 0, None))(parameters, buffers, x)
    torch.testing.assert_close(found, torch.stack([model(x) for model in models]))
    with pytest.warns(FutureWarning), pytest.raises(RuntimeError, match="at least one model"):
        deprecated.combine_state_for_ensemble([])
