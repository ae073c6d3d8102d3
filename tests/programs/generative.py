"""Programs that generate: autoencoders, adversarial networks, diffusion, flows."""

import math

from tests.programs.common import fit, gradients, parameters


def vae(torch):
    nn, F = torch.nn, torch.nn.functional

    class VAE(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.mu, self.logvar = nn.Linear(36, 20), nn.Linear(20, 4), nn.Linear(20, 4)
            self.fc3, self.fc4 = nn.Linear(4, 20), nn.Linear(20, 36)

        def forward(self, x):
            h = F.relu(self.fc1(x.view(-1, 36)))
            mu, logvar = self.mu(h), self.logvar(h)
            z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
            return torch.sigmoid(self.fc4(F.relu(self.fc3(z)))), mu, logvar

    model, x = VAE(), torch.rand(10, 1, 6, 6)

    def loss():
        decoded, mu, logvar = model(x)
        bce = F.binary_cross_entropy(decoded, x.view(-1, 36), reduction="sum")
        return bce - 0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())

    losses = fit(torch.optim.Adam(model.parameters(), lr=1e-3), loss, 6)
    return {"losses": losses, "state": parameters(model), "grads": gradients(model)}


def convolutional_autoencoder(torch):
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, 2, 1),
        nn.ELU(),
        nn.Conv2d(4, 8, 3, 2, 1),
        nn.Flatten(),
        nn.Linear(32, 3),
        nn.Tanhshrink(),
        nn.Linear(3, 32),
        nn.Unflatten(1, (8, 2, 2)),
        nn.Upsample(scale_factor=2, mode="nearest"),
        nn.ConvTranspose2d(8, 4, 3, 1, 1),
        nn.Softplus(),
        nn.ConvTranspose2d(4, 1, 3, 2, 1, output_padding=1),
        nn.Sigmoid(),
    )
    x = torch.rand(6, 1, 8, 8)
    noisy = (x + 0.1 * torch.randn(x.size())).clamp_(0.0, 1.0)
    losses = fit(torch.optim.Adamax(model.parameters()), lambda: nn.MSELoss()(model(noisy), x), 5)
    return {"losses": losses, "state": parameters(model), "model": str(model)}


def gan(torch):
    nn = torch.nn
    G = nn.Sequential(
        nn.ConvTranspose2d(8, 8, 4, 1, 0, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(True),
        nn.ConvTranspose2d(8, 1, 4, 2, 1, bias=False),
        nn.Tanh(),
    )
    D = nn.Sequential(
        nn.utils.spectral_norm(nn.Conv2d(1, 8, 4, 2, 1)),
        nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(8, 1, 4, 1, 0),
        nn.Flatten(),
    )

    def weights_init(m):
        if m.__class__.__name__.find("BatchNorm") != -1:
            nn.init.normal_(m.weight.data, 1.0, 0.02)
            nn.init.constant_(m.bias.data, 0)

    G.apply(weights_init)
    criterion = nn.BCEWithLogitsLoss()
    optG = torch.optim.Adam(G.parameters(), lr=2e-4, betas=(0.5, 0.999))
    optD = torch.optim.Adam(D.parameters(), lr=2e-4, betas=(0.5, 0.999))
    real, history = torch.rand(8, 1, 8, 8) * 2 - 1, []
    for _ in range(4):
        D.zero_grad()
        label = torch.full((8, 1), 1.0)
        real_error = criterion(D(real), label)
        real_error.backward()
        fake = G(torch.randn(8, 8, 1, 1))
        fake_error = criterion(D(fake.detach()), label.fill_(0.0))
        fake_error.backward()
        optD.step()
        G.zero_grad()
        g_error = criterion(D(fake), label.fill_(1))
        g_error.backward()
        optG.step()
        history.append((real_error.item(), fake_error.item(), g_error.item()))
    return {"history": history, "G": parameters(G), "D": parameters(D), "repr": repr(D)}


def wgan_gp(torch):
    nn, autograd = torch.nn, torch.autograd
    critic = nn.Sequential(nn.Linear(6, 16), nn.LayerNorm(16), nn.SiLU(), nn.Linear(16, 1))
    generator = nn.Sequential(nn.Linear(3, 16), nn.SELU(), nn.Linear(16, 6))
    real = torch.randn(12, 6) + 2
    optimizer = torch.optim.RMSprop(critic.parameters(), lr=1e-3)

    def loss():
        fake = generator(torch.randn(12, 3)).detach()
        alpha = torch.rand(12, 1).expand_as(real)
        mixed = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
        score = critic(mixed)
        (slope,) = autograd.grad(
            outputs=score,
            inputs=mixed,
            grad_outputs=torch.ones_like(score),
            create_graph=True,
            retain_graph=True,
            only_inputs=True,
        )
        penalty = ((slope.norm(2, dim=1) - 1) ** 2).mean() * 10
        return critic(fake).mean() - critic(real).mean() + penalty

    losses = fit(optimizer, loss, 5)
    for p in critic.parameters():
        p.data.clamp_(-0.1, 0.1)
    (-critic(generator(torch.randn(12, 3))).mean()).backward()
    return {"losses": losses, "critic": parameters(critic), "generator": gradients(generator)}


def diffusion(torch):
    nn, F = torch.nn, torch.nn.functional
    beta = torch.linspace(1e-4, 0.02, 50)
    alpha_bar = torch.cumprod(1 - beta, dim=0)

    class Denoiser(nn.Module):
        def __init__(self):
            super().__init__()
            self.time = nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 32))
            self.inner, self.outer = nn.Linear(2, 32), nn.Linear(32, 2)

        def forward(self, x, t):
            rate = torch.exp(-math.log(10000) * torch.arange(8) / 8)
            angle = t[:, None].float() * rate[None]
            return self.outer(F.silu(self.inner(x) + self.time(torch.cat([angle.cos(), angle.sin()], dim=-1))))

    model, data = Denoiser(), torch.randn(32, 2) * torch.tensor([1.0, 0.2])
    average = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    losses = []
    for _ in range(5):
        t = torch.randint(0, 50, (32,))
        noise = torch.randn_like(data)
        noisy = alpha_bar[t].sqrt()[:, None] * data + (1 - alpha_bar[t]).sqrt()[:, None] * noise
        losses += fit(optimizer, lambda noisy=noisy, t=t, noise=noise: F.mse_loss(model(noisy, t), noise), 1)
        average.update_parameters(model)
    x = torch.randn(4, 2)
    with torch.no_grad():
        for step in reversed(range(50)):
            t = torch.full((4,), step, dtype=torch.long)
            mean = (x - beta[step] / (1 - alpha_bar[step]).sqrt() * average(x, t)) / (1 - beta[step]).sqrt()
            x = mean + (beta[step].sqrt() * torch.randn_like(x) if step > 0 else 0)
    return {"losses": losses, "samples": x, "average": parameters(average)}


def coupling_flow(torch):
    nn = torch.nn
    nets = nn.ModuleList(nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 2)) for _ in range(4))
    x = torch.randn(40, 2) @ torch.tensor([[1.0, 0.5], [0.0, 0.3]])

    def loss():
        z, log_det = x, torch.zeros(len(x))
        for i, net in enumerate(nets):
            a, b = z.split(1, dim=1) if i % 2 else z.flip(1).split(1, dim=1)
            s, t = net(a).chunk(2, dim=1)
            z = torch.cat([a, b * s.tanh().exp() + t], dim=1)
            log_det = log_det + s.tanh().sum(1)
        return -(-0.5 * z.square().sum(1) - math.log(2 * math.pi) + log_det).mean()

    losses = fit(torch.optim.RAdam(nets.parameters(), 1e-2), loss, 6)
    return {"losses": losses, "grads": gradients(nets)}


def style_transfer(torch):
    """The image itself is optimized with LBFGS, features taken by forward hooks."""
    nn, F = torch.nn, torch.nn.functional
    network = (
        nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(4, 8, 3, padding=1), nn.ReLU())
        .requires_grad_(False)
        .double()
    )
    features = {}
    handles = [network[i].register_forward_hook(lambda module, args, out, i=i: features.__setitem__(i, out)) for i in (1, 4)]

    def gram(x):
        b, c, h, w = x.size()
        flat = x.view(b * c, h * w)
        return torch.mm(flat, flat.t()).div(b * c * h * w)

    content, style = torch.rand(1, 3, 8, 8, dtype=torch.float64), torch.rand(1, 3, 8, 8, dtype=torch.float64)
    network(style)
    wanted = {i: gram(f).detach() for i, f in features.items()}
    network(content)
    content_features = features[4].detach()
    image = content.clone().requires_grad_(True)
    optimizer = torch.optim.LBFGS([image], lr=0.5, max_iter=5, line_search_fn="strong_wolfe")
    losses = []

    def closure():
        optimizer.zero_grad()
        network(image)
        loss = 1e3 * sum(F.mse_loss(gram(features[i]), wanted[i]) for i in wanted) + F.mse_loss(features[4], content_features)
        loss.backward()
        losses.append(loss.item())
        return loss

    for _ in range(2):
        optimizer.step(closure)
    for handle in handles:
        handle.remove()
    features.clear()
    network(image)
    return {"losses": losses, "image": image, "removed": len(features)}
