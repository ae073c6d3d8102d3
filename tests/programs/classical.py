"""Programs of numerics: least squares, decompositions, clustering, Fourier transforms, sorting and metrics."""

import math


def linear_regression(torch):
    x = torch.randn(50, 3, dtype=torch.float64)
    design = torch.column_stack([torch.ones(50, dtype=torch.float64), x])
    y = design @ torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=torch.double) + 0.1 * torch.randn(50).double()
    solved = torch.linalg.lstsq(design, y.unsqueeze(1))
    normal = torch.linalg.solve(design.mT @ design, design.mT @ y)
    q, r = torch.linalg.qr(design)
    by_qr = torch.linalg.solve_triangular(r, (q.T @ y)[:, None], upper=True)
    ridge = torch.linalg.inv(design.T @ design + 0.1 * torch.eye(4, dtype=torch.float64)) @ design.T @ y
    residual = y - design @ normal
    r2 = 1 - residual.square().sum() / (y - y.mean()).square().sum()
    return {
        "lstsq": solved.solution,
        "normal": normal,
        "qr": by_qr,
        "ridge": ridge,
        "r2": r2,
        "pinv": torch.linalg.pinv(design) @ y,
        "correlation": torch.corrcoef(x.T),
        "covariance": torch.cov(x.T),
        "condition": torch.linalg.cond(design),
    }


def logistic_newton(torch):
    x, w = torch.randn(60, 3, dtype=torch.float64), torch.zeros(3, dtype=torch.float64)
    y = torch.bernoulli(torch.sigmoid(x @ torch.tensor([1.0, -1.0, 0.5], dtype=torch.float64)))

    def loss(w):
        return torch.nn.functional.softplus(-(2 * y - 1) * (x @ w)).mean() + 0.01 * w.dot(w)

    losses = []
    for _ in range(4):
        gradient = torch.autograd.functional.jacobian(loss, w)
        hessian = torch.autograd.functional.hessian(loss, w)
        w = w - torch.linalg.solve(hessian, gradient)
        losses.append(loss(w).item())
    return {"w": w, "losses": losses, "hessian": hessian}


def k_means(torch):
    x = torch.cat([torch.randn(30, 2) + torch.tensor(c) for c in ([0.0, 0.0], [5.0, 5.0], [0.0, 6.0])])
    centres = x[torch.randperm(len(x))[:3]].clone()
    for _ in range(6):
        labels = torch.cdist(x, centres).argmin(dim=1)
        for k in range(3):
            if (labels == k).any():
                centres[k] = x[labels == k].mean(dim=0)
    inertia = (x - centres[labels]).pow(2).sum()
    return {"centres": centres, "labels": labels, "inertia": inertia, "sizes": torch.bincount(labels, minlength=3).tolist()}


def principal_components(torch):
    x = torch.randn(40, 6, dtype=torch.float64) @ torch.randn(6, 6, dtype=torch.float64)
    centred = x - x.mean(dim=0, keepdim=True)
    u, s, vh = torch.linalg.svd(centred, full_matrices=False)
    signs = torch.sign(vh[torch.arange(6), vh.abs().argmax(dim=1)])
    components = vh * signs[:, None]
    values, vectors = torch.linalg.eigh(torch.cov(x.T))
    projected = centred @ components[:2].T
    standard = (x - x.mean(0)) / x.std(0, unbiased=False)
    return {
        "s": s,
        "components": components,
        "values": values.flip(0),
        "projected": projected,
        "rank": torch.linalg.matrix_rank(x).item(),
        "explained": s.square().div(s.square().sum()).cumsum(0),
        "rebuilt": (u * s) @ vh + x.mean(0),
        "standard": standard,
    }


def gaussian_process(torch):
    x, z = torch.linspace(0, 5, 12, dtype=torch.float64)[:, None], torch.linspace(0, 5, 7, dtype=torch.float64)[:, None]
    y = torch.sin(x).squeeze() + 0.1 * torch.randn(12, dtype=torch.float64)
    raw = torch.zeros(3, dtype=torch.float64, requires_grad=True)

    def kernel(a, b):
        return raw[0].exp() * torch.exp(-0.5 * (a - b.T).pow(2) / raw[1].exp())

    optimizer = torch.optim.Adam([raw], lr=0.1)
    for _ in range(5):
        optimizer.zero_grad()
        covariance = kernel(x, x) + (raw[2] - 3).exp() * torch.eye(12, dtype=torch.float64)
        factor = torch.linalg.cholesky(covariance)
        alpha = torch.cholesky_solve(y[:, None], factor)
        loss = 0.5 * y @ alpha.squeeze(1) + factor.diagonal().log().sum() + 6 * math.log(2 * math.pi)
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        mean = kernel(z, x) @ alpha
        solved = torch.linalg.solve_triangular(factor, kernel(x, z), upper=False)
        variance = kernel(z, z).diag() - solved.pow(2).sum(0)
        drawn = mean + torch.linalg.cholesky(torch.diag(variance)) @ torch.randn(7, 1, dtype=torch.float64)
    return {
        "loss": loss,
        "raw": raw,
        "grad": raw.grad,
        "mean": mean,
        "variance": variance,
        "drawn": drawn,
        "logdet": torch.logdet(covariance),
    }


def fourier_filter(torch):
    t = torch.arange(256) / 256
    signal = (2 * math.pi * 5 * t).sin() + 0.5 * torch.cos(2 * torch.pi * 60 * t) + 0.1 * torch.randn(256)
    spectrum, freqs = torch.fft.rfft(signal), torch.fft.rfftfreq(256, d=1 / 256)
    spectrum[freqs > 20] = 0
    clean = torch.fft.irfft(spectrum, n=256)
    image = torch.randn(8, 8, requires_grad=True)
    low = torch.fft.fftshift(torch.fft.fft2(image)) * torch.hamming_window(8).outer(torch.hann_window(8))
    back = torch.fft.ifft2(torch.fft.ifftshift(low)).real
    back.square().sum().backward()
    long = torch.nn.functional.conv1d(signal[None, None], torch.ones(1, 1, 9) / 9, padding=4)
    by_fft = torch.fft.irfft(torch.fft.rfft(signal, 264) * torch.fft.rfft(torch.ones(9) / 9, 264), 264)[4:260]
    return {
        "clean": clean,
        "phase": torch.angle(torch.fft.fft(clean)[5]),
        "grad": image.grad,
        "same": (long - by_fft).abs().max() < 1e-5,
        "magnitude": spectrum.abs(),
        "spectrum": spectrum,
    }


def spectrogram(torch):
    wave = torch.sin(torch.cumsum(torch.linspace(0.05, 0.5, 800, dtype=torch.float64), 0)).requires_grad_()
    window = torch.hann_window(64, dtype=torch.float64)
    transformed = torch.stft(wave, n_fft=64, hop_length=16, window=window, center=True, return_complex=True)
    power = transformed.abs().pow(2)
    decibel = 10 * torch.log10(power.clamp_min(1e-10))
    bank = torch.clamp(1 - (torch.arange(33)[:, None] - torch.linspace(2, 30, 10)).abs() / 3, min=0)
    mel = (bank.T.double() @ power).add(1e-6).log()
    mel.mean().backward()
    back = torch.istft(transformed, 64, 16, window=window, length=800)
    return {
        "mel": mel,
        "back": back,
        "decibel": torch.maximum(decibel, decibel.max() - 80),
        "shape": list(transformed.shape),
        "grad": wave.grad,
    }


def metrics(torch):
    """Area under the curve, precision and recall, confusion matrix, calibration, ranking."""
    score, truth = torch.rand(200), torch.randint(0, 2, (200,))
    order = torch.argsort(score, descending=True)
    hits = truth[order]
    tpr = torch.cumsum(hits, 0) / hits.sum()
    fpr = torch.cumsum(1 - hits, 0) / (1 - hits).sum()
    area = torch.trapezoid(tpr, fpr)
    classes, predicted = torch.randint(5, (2, 100))
    confusion = torch.zeros(5, 5, dtype=torch.int64)
    confusion.index_put_((classes, predicted), torch.tensor(1), accumulate=True)
    precision = confusion.diag() / confusion.sum(0).clamp(min=1)
    recall = confusion.diagonal().float() / confusion.sum(1)
    f1 = torch.nan_to_num(2 * precision * recall / (precision + recall))
    values, inverse, counts = torch.unique(classes * 10 + predicted, return_inverse=True, return_counts=True)
    bins = torch.bucketize(score, torch.linspace(0, 1, 6)[1:-1])
    calibration = torch.stack([score[bins == b].mean() - truth[bins == b].float().mean() for b in range(5)])
    (_, top), target = torch.randn(20, 10).topk(5, dim=1, largest=True, sorted=True), torch.randint(10, (20, 1))
    correct = top.eq(target.expand_as(top))
    at_k = {k: correct[:, :k].any(1).float().sum().mul(100 / 20).item() for k in (1, 3, 5)}
    kth = score.kthvalue(10)
    return {
        "area": area,
        "confusion": confusion,
        "f1": f1,
        "values": values,
        "inverse": inverse,
        "counts": counts,
        "calibration": calibration,
        "at_k": at_k,
        "kth": kth,
        "mode": classes.mode().values,
        "search": torch.searchsorted(score.sort().values, torch.tensor([0.2, 0.7])),
        "isin": torch.isin(values, torch.tensor([11, 22])),
        "nonzero": torch.nonzero(confusion > 5),
        "msort": score[:6].msort(),
    }


def markov_and_viterbi(torch):
    transition, emission = torch.rand(4, 4).softmax(1).log(), torch.rand(4, 6).log_softmax(1)
    observed = torch.randint(6, (15,))
    alpha = emission[:, observed[0]] - math.log(4)
    best, pointers = alpha, []
    for symbol in observed[1:]:
        alpha = torch.logsumexp(alpha[:, None] + transition, dim=0) + emission[:, symbol]
        best, pointer = (best[:, None] + transition).max(dim=0)
        best = best + emission[:, symbol]
        pointers.append(pointer)
    path = [int(best.argmax())]
    for pointer in reversed(pointers):
        path.insert(0, int(pointer[path[0]]))
    values = torch.linalg.eigvals(transition.exp())
    stationary = torch.linalg.matrix_power(transition.exp(), 50)[0]
    return {"evidence": alpha.logsumexp(0), "path": path, "stationary": stationary, "largest": values.abs().max()}


def indexing_and_masks(torch):
    x = torch.arange(60.0).reshape(3, 4, 5)
    x[..., 0] = -1
    x[x > 50] *= 2
    x[:, [0, 2], 1:3] = torch.tensor([7.0, 8.0])
    x[torch.tensor([0, 1]), torch.tensor([1, 1])] += torch.arange(5.0)
    x[1:, ::2, -1] = x[1:, ::2, -1].neg()
    x[None, 2, 3].fill_(0.5)
    x[0, 0, 0], x[0, 0, 1] = 9, True
    rows = x.view(12, 5)
    rows[rows.sum(1) < 0] = 0
    padded = torch.nn.functional.pad(rows, (1, 1), value=-5.0)
    picked = padded.take_along_dim(padded.argsort(dim=1), dim=1)
    triangle = torch.tril_indices(5, 5, offset=-1)
    square = torch.zeros(5, 5, dtype=torch.int32)
    square[triangle[0], triangle[1]] = torch.arange(10, dtype=torch.int32)
    grid = torch.stack(torch.meshgrid(torch.arange(3), torch.arange(2), indexing="ij"), dim=-1).reshape(-1, 2)
    scattered = (
        torch.zeros(3, 5)
        .scatter_(1, torch.tensor([[0, 4], [1, 3], [2, 2]]), 1.0)
        .masked_scatter_(torch.eye(3, 5).bool(), torch.arange(9.0))
    )
    w = torch.ones(4, 5, requires_grad=True)
    v = w * 2
    v[1:3, ::2] = 0
    v[:, 1].mul_(3)
    v.masked_fill(torch.eye(4, 5, dtype=torch.bool), -1).sum().backward()
    words = torch.tensor([1, 2, 4, 8], dtype=torch.uint8)
    return {
        "x": x,
        "picked": picked,
        "square": square,
        "grid": grid,
        "scattered": scattered,
        "grad": w.grad,
        "shift": words << 1,
        "bits": (words[:, None] >> torch.arange(4, dtype=torch.uint8)) & 1,
        "floor": torch.tensor([-7, 7]) // 2,
        "mod": torch.tensor([-7, 7]) % 3,
        "tile": words.tile(2, 2),
        "dsplit": torch.dsplit(x, [2])[0],
        "combos": torch.combinations(words),
        "cart": torch.cartesian_prod(words[:2], words),
        "strides": [x.mT.stride(), x.expand(2, 3, 4, 5).stride(), x.permute(2, 0, 1).is_contiguous()],
        "promoted": str((words + 1.5).dtype),
    }


def fractal_and_physics(torch):
    """Complex iteration, Game of Life, n-body by autograd, Monte Carlo."""
    real, imaginary = torch.linspace(-2, 1, 20), torch.linspace(-1, 1, 12)
    c = torch.complex(real[None, :].expand(12, 20).contiguous(), imaginary[:, None].expand(12, 20).contiguous())
    z, steps = torch.zeros_like(c), torch.zeros(c.shape, dtype=torch.int32)
    for _ in range(15):
        z = torch.where(z.abs() < 2, z * z + c, z)
        steps += (z.abs() < 2).int()
    life = (torch.rand(10, 10) < 0.4).to(torch.uint8)
    for _ in range(5):
        near = sum(torch.roll(life, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
        life = ((near == 3) | ((life == 1) & (near == 2))).to(torch.uint8)
    position, velocity = torch.randn(4, 2, dtype=torch.float64), torch.zeros(4, 2, dtype=torch.float64)
    for _ in range(10):
        p = position.clone().requires_grad_()
        energy = -1 / (torch.pdist(p) + 0.1)
        (force,) = torch.autograd.grad(energy.sum(), p)
        velocity -= 0.01 * force
        position = position + 0.01 * velocity
    inside = (torch.rand(1000, 2, generator=torch.Generator().manual_seed(3)).norm(dim=1) < 1).double().mean() * 4
    return {"steps": steps, "life": life, "position": position, "pi": inside}
