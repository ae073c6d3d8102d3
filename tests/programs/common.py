"""Helpers of the whole programs: a training loop, and the values of a model."""


def fit(optimizer, loss_of, steps):
    """Minimises `loss_of()` for this many steps; returns the loss of each."""
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def parameters(model):
    """The parameters and buffers of a model, by name."""
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def gradients(model):
    """The gradients of a model's parameters, by name."""
    return {name: parameter.grad for name, parameter in model.named_parameters()}
