"""Programs of reinforcement learning, meta learning, graphs, recommendation and differential equations."""

import math
import random
from collections import deque

from tests.programs.common import fit, gradients, parameters


def policy_gradient(torch):
    """REINFORCE with a baseline on a made-up environment."""
    nn = torch.nn
    policy = nn.Sequential(nn.Linear(4, 16), nn.ReLU6(), nn.Linear(16, 3))
    value = nn.Linear(4, 1)
    optimizer = torch.optim.Adam([*policy.parameters(), *value.parameters()], lr=1e-2)
    dynamics, history = torch.randn(3, 4, 4) * 0.5, []
    for _ in range(3):
        state, logs, rewards, entropies, values = torch.randn(4), [], [], [], []
        for _ in range(8):
            log_probabilities = torch.log_softmax(policy(state), dim=-1)
            action = torch.multinomial(log_probabilities.exp(), 1).squeeze()
            logs.append(log_probabilities[action])
            entropies.append(-(log_probabilities * log_probabilities.exp()).sum())
            values.append(value(state).squeeze())
            state = torch.tanh(dynamics[action] @ state)
            rewards.append(state.sum().item())
        returns, total = [], 0.0
        for reward in reversed(rewards):
            total = reward + 0.95 * total
            returns.insert(0, total)
        returns = torch.tensor(returns)
        returns = (returns - returns.mean()) / (returns.std() + 1e-8)
        advantage = returns - torch.stack(values)
        loss = -(torch.stack(logs) * advantage.detach()).sum() + advantage.pow(2).mean() - 0.01 * torch.stack(entropies).sum()
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
        optimizer.step()
        history.append((loss.item(), norm.item()))
    return {"history": history, "policy": parameters(policy), "value": parameters(value)}


def ppo_continuous(torch):
    nn = torch.nn
    mean, log_std = nn.Linear(3, 2), nn.Parameter(torch.zeros(2))
    states, advantages = torch.randn(20, 3), torch.randn(20)

    def log_probability(actions):
        return (-0.5 * ((actions - mean(states)) / log_std.exp()) ** 2 - log_std - 0.5 * math.log(2 * math.pi)).sum(-1)

    with torch.no_grad():
        actions = torch.normal(mean(states), log_std.exp().expand(20, 2))
        old_log = log_probability(actions)

    def loss():
        ratio = torch.exp(log_probability(actions) - old_log)
        return -torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages).mean() - 0.001 * (log_std + 1.42).mean()

    losses = fit(torch.optim.Adam([*mean.parameters(), log_std], 0.05), loss, 5)
    return {"losses": losses, "actions": actions, "kl": (old_log - log_probability(actions)).mean(), "log_std": log_std}


def dqn(torch):
    nn, F = torch.nn, torch.nn.functional
    generator = random.Random(7)
    online, target = (
        nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 2)),
        nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 2)),
    )
    target.load_state_dict(online.state_dict())
    replay, losses = deque(maxlen=100), []
    optimizer = torch.optim.AdamW(online.parameters(), lr=1e-2, amsgrad=True)
    state = torch.randn(1, 4)
    for step in range(30):
        if generator.random() < 0.3:
            action = torch.tensor([[generator.randrange(2)]], dtype=torch.long)
        else:
            with torch.no_grad():
                action = online(state).max(1).indices.view(1, 1)
        following = None if step % 7 == 6 else torch.sin(state * (action.item() + 1))
        replay.append((state, action, following, torch.tensor([float(state.sum() > 0)])))
        state = torch.randn(1, 4) if following is None else following
        if len(replay) < 16:
            continue
        states, actions, followings, rewards = zip(*generator.sample(replay, 8), strict=True)
        alive = torch.tensor(tuple(s is not None for s in followings), dtype=torch.bool)
        predicted = online(torch.cat(states)).gather(1, torch.cat(actions))
        following_values = torch.zeros(8)
        with torch.no_grad():
            following_values[alive] = target(torch.cat([s for s in followings if s is not None])).max(1).values
        loss = F.smooth_l1_loss(predicted, (torch.cat(rewards) + 0.9 * following_values).unsqueeze(1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(online.parameters(), 100)
        optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(target.parameters(), online.parameters(), strict=True):
                slow.mul_(0.9).add_(fast, alpha=0.1)
        losses.append(loss.item())
    return {"losses": losses, "online": parameters(online), "target": parameters(target)}


def maml(torch):
    nn, F = torch.nn, torch.nn.functional
    model = nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 1))
    outer = torch.optim.Adam(model.parameters(), lr=1e-2)

    def loss():
        total = 0.0
        for task in range(3):
            x = torch.rand(10, 1) * 4 - 2
            y = torch.sin(x + task)
            fast = dict(model.named_parameters())
            for _ in range(2):
                inner = F.mse_loss(torch.func.functional_call(model, fast, (x[:5],)), y[:5])
                grads = torch.autograd.grad(inner, tuple(fast.values()), create_graph=True)
                fast = {name: p - 0.1 * g for (name, p), g in zip(fast.items(), grads, strict=True)}
            total = total + F.mse_loss(torch.func.functional_call(model, fast, x[5:]), y[5:])
        return total / 3

    losses = fit(outer, loss, 4)
    return {"losses": losses, "grads": gradients(model)}


def functional_transforms(torch):
    """Gradients, Jacobians and Hessians by torch.func."""
    func, nn = torch.func, torch.nn
    model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))
    weights = {k: v.detach() for k, v in model.named_parameters()}
    x, y = torch.randn(6, 3), torch.randn(6, 2)

    def loss(weights, sample, target):
        return nn.functional.mse_loss(func.functional_call(model, weights, (sample.unsqueeze(0),)), target.unsqueeze(0))

    per_sample = [func.grad_and_value(loss)(weights, *pair) for pair in zip(x, y, strict=True)]
    jacobian = func.jacrev(lambda z: model(z))(x[0])
    forward_jacobian = func.jacfwd(lambda z: model(z))(x[0])
    hessian = func.hessian(lambda z: model(z).sum())(x[0])
    out, pull = func.vjp(model, x[0])
    _, push = func.jvp(model, (x[0],), (torch.ones(3),))
    return {
        "per_sample": per_sample,
        "jacobian": jacobian,
        "forward": forward_jacobian,
        "hessian": hessian,
        "pull": pull(torch.ones(2)),
        "push": push,
    }


def neural_ode(torch):
    nn = torch.nn
    field = nn.Sequential(nn.Linear(2, 16), nn.Softsign(), nn.Linear(16, 2))
    start, times = torch.tensor([[2.0, 0.0]]), torch.linspace(0.0, 1.0, 11)
    matrix = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
    truth = torch.stack([start @ torch.matrix_exp(matrix * t) for t in times])

    def solve():
        y, path = start, [start]
        for a, b in zip(times[:-1], times[1:], strict=True):
            h = b - a
            k1 = field(y**3)
            k2 = field((y + h / 2 * k1) ** 3)
            y = y + h * k2
            path.append(y)
        return torch.stack(path)

    losses = fit(torch.optim.Rprop(field.parameters(), lr=1e-2), lambda: (solve() - truth).abs().mean(), 5)
    return {"losses": losses, "truth": truth, "path": solve()}


def physics_informed(torch):
    """u'' = -u by second derivatives inside the loss."""
    nn = torch.nn
    net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1)).double()
    x = torch.linspace(0, 3, 12, dtype=torch.float64).unsqueeze(1).requires_grad_()

    def loss():
        u = net(x)
        du = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
        ddu = torch.autograd.grad(du, x, torch.ones_like(du), create_graph=True)[0]
        return (
            (ddu + u).square().mean() + net(torch.zeros(1, 1, dtype=torch.float64)).square().mean() + (du[0] - 1).square().sum()
        )

    losses = fit(torch.optim.Adam(net.parameters(), 1e-2), loss, 5)
    return {"losses": losses, "state": parameters(net)}


def graph_convolution(torch):
    nn, F = torch.nn, torch.nn.functional
    nodes, edges = 12, torch.randint(0, 12, (2, 30))
    edges = torch.cat([edges, edges.flip(0), torch.arange(nodes).repeat(2, 1)], dim=1)
    edges = torch.unique(edges, dim=1)
    source, destination = edges

    class GCN(nn.Module):
        def __init__(self, inputs, outputs):
            super().__init__()
            self.linear = nn.Linear(inputs, outputs, bias=False)
            self.attend = nn.Parameter(torch.empty(1, 2 * outputs))
            nn.init.xavier_normal_(self.attend, gain=nn.init.calculate_gain("relu"))

        def forward(self, x):
            degree = torch.zeros(nodes).scatter_add_(0, destination, torch.ones(destination.numel()))
            norm = degree[source].rsqrt() * degree[destination].rsqrt()
            h = self.linear(x)
            score = F.leaky_relu((torch.cat([h[source], h[destination]], -1) * self.attend).sum(-1), 0.2)
            highest = torch.full((nodes,), -torch.inf).scatter_reduce(0, destination, score, reduce="amax", include_self=True)
            score = (score - highest[destination]).exp()
            total = torch.zeros(nodes).index_add(0, destination, score)
            return torch.zeros_like(h).index_add_(0, destination, h[source] * (norm * score / total[destination]).unsqueeze(-1))

    first, second = GCN(5, 8), GCN(8, 3)
    model = nn.ModuleList([first, second])
    x, y = torch.randn(nodes, 5), torch.randint(3, (nodes,))
    known = torch.zeros(nodes, dtype=torch.bool)
    known[torch.randperm(nodes)[:6]] = True
    losses = fit(
        torch.optim.Adam(model.parameters(), 0.01, weight_decay=5e-4),
        lambda: F.cross_entropy(second(F.elu(first(x)))[known], y[known]),
        5,
    )
    adjacency = torch.sparse_coo_tensor(edges, torch.ones(edges.shape[1]), (nodes, nodes)).coalesce()
    return {
        "losses": losses,
        "grads": gradients(model),
        "spread": torch.sparse.mm(adjacency, x),
        "edges": edges,
        "nnz": adjacency._nnz(),
    }


def matrix_factorisation(torch):
    nn = torch.nn
    users, items = nn.Embedding(20, 4, sparse=True), nn.Embedding(15, 4, sparse=True)
    model = nn.ModuleDict({"user": users, "item": items})
    triples = torch.stack([torch.randint(20, (40,)), torch.randint(15, (40,))], 1)
    ratings = torch.randint(1, 6, (40,)).float()
    optimizer = torch.optim.SparseAdam(list(model.parameters()), lr=0.05)
    losses = []
    for _ in range(3):
        for batch in torch.randperm(40).split(16):
            user, item = triples[batch].unbind(1)
            optimizer.zero_grad()
            loss = ((users(user) * items(item)).sum(1) - ratings[batch]).pow(2).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    grad = users.weight.grad
    return {"losses": losses, "state": parameters(model), "sparse": grad.is_sparse, "grad": grad.coalesce()}


def quantile_regression(torch):
    nn = torch.nn
    model = nn.Sequential(nn.Linear(2, 16), nn.CELU(), nn.Linear(16, 3))
    x = torch.randn(64, 2)
    y = x.sum(1, keepdim=True) + torch.randn(64, 1) * x[:, :1].abs()
    levels = torch.tensor([0.1, 0.5, 0.9])

    def loss():
        error = y - model(x)
        return torch.max(levels * error, (levels - 1) * error).mean()

    losses = fit(torch.optim.ASGD(model.parameters(), lr=0.05), loss, 6)
    with torch.no_grad():
        coverage = (y <= model(x)).float().mean(0)
    return {
        "losses": losses,
        "coverage": coverage,
        "quantiles": torch.quantile(y, levels, dim=0),
        "median": y.median(),
        "state": parameters(model),
    }
