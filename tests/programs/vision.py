"""Programs that classify, segment and embed images."""

from tests.programs.common import fit, gradients, parameters


def mlp(torch):
    nn = torch.nn
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 10))
    x, y = torch.randn(48, 1, 8, 8), torch.randint(0, 10, (48,))
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    losses = fit(torch.optim.Adam(model.parameters(), lr=1e-2), lambda: criterion(model(x), y), 8)
    model.eval()
    with torch.no_grad():
        logits = model(x)
        accuracy = (logits.argmax(dim=1) == y).float().mean().item()
    return {"losses": losses, "logits": logits, "accuracy": accuracy, "state": parameters(model), "grads": gradients(model)}


def cnn(torch):
    nn, F = torch.nn, torch.nn.functional

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
            self.conv2 = nn.Conv2d(8, 16, 3, stride=2)
            self.drop = nn.Dropout2d(0.25)
            self.fc = nn.LazyLinear(10)

        def forward(self, x):
            x = F.max_pool2d(F.relu(self.conv1(x)), 2)
            x = self.drop(F.relu(self.conv2(x)))
            return F.log_softmax(self.fc(torch.flatten(x, 1)), dim=1)

    net = Net()
    x, y = torch.rand(16, 1, 16, 16), torch.randint(10, size=(16,))
    net(x)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-4)
    losses = fit(optimizer, lambda: F.nll_loss(net(x), y), 6)
    return {"losses": losses, "state": parameters(net), "grads": gradients(net), "model": str(net)}


def resnet(torch):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, inputs, outputs, stride=1):
            super().__init__()
            self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(outputs)
            self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(outputs)
            self.relu = nn.ReLU(inplace=True)
            self.shortcut = nn.Identity()
            if stride != 1 or inputs != outputs:
                self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

        def forward(self, x):
            out = self.relu(self.bn1(self.conv1(x)))
            out = self.bn2(self.conv2(out))
            out += self.shortcut(x)
            return self.relu(out)

    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, 1, 1), Block(8, 8), Block(8, 16, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5)
    )
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    x, y = torch.randn(8, 3, 16, 16).to(memory_format=torch.channels_last), torch.randint(0, 5, (8,))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=5)
    losses, rates = [], []
    for _ in range(5):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
        rates.append(scheduler.get_last_lr()[0])
    model.eval()
    with torch.inference_mode():
        out = model(x)
    return {
        "losses": losses,
        "rates": rates,
        "out": out,
        "running": model[1].bn1.running_var,
        "count": sum(p.numel() for p in model.parameters() if p.requires_grad),
        "model": repr(model),
    }


def vision_transformer(torch):
    nn = torch.nn

    class ViT(nn.Module):
        def __init__(self, size=16, patch=4, width=32, depth=2, heads=4, classes=10):
            super().__init__()
            self.patches = nn.Conv2d(3, width, kernel_size=patch, stride=patch)
            self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
            self.position = nn.Parameter(torch.empty(1, (size // patch) ** 2 + 1, width))
            nn.init.trunc_normal_(self.position, std=0.02)
            layer = nn.TransformerEncoderLayer(
                width, heads, width * 4, dropout=0.1, activation="gelu", batch_first=True, norm_first=True
            )
            self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
            self.norm = nn.LayerNorm(width)
            self.head = nn.Linear(width, classes)

        def forward(self, x):
            x = self.patches(x).flatten(2).transpose(1, 2)
            x = torch.cat([self.cls_token.expand(x.shape[0], -1, -1), x], dim=1) + self.position
            return self.head(self.norm(self.encoder(x))[:, 0])

    model = ViT()
    x, y = torch.randn(8, 3, 16, 16), torch.arange(8) % 10
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.05)
    losses = fit(optimizer, lambda: nn.functional.cross_entropy(model(x), y), 4)
    model.eval()
    with torch.no_grad():
        out = model(x).softmax(-1)
    return {"losses": losses, "out": out, "top": out.topk(3).indices, "grads": gradients(model), "model": repr(model)}


def unet(torch):
    nn, F = torch.nn, torch.nn.functional

    def double(inputs, outputs):
        return nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, padding=1),
            nn.GroupNorm(2, outputs),
            nn.SiLU(),
            nn.Conv2d(outputs, outputs, 3, padding="same"),
            nn.InstanceNorm2d(outputs, affine=True),
            nn.LeakyReLU(0.1),
        )

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.down1, self.down2, self.middle = double(1, 4), double(4, 8), double(8, 16)
            self.up2 = nn.ConvTranspose2d(16, 8, 2, stride=2)
            self.join2 = double(16, 8)
            self.join1 = double(12, 4)
            self.out = nn.Conv2d(4, 1, 1)

        def forward(self, x):
            a = self.down1(x)
            b = self.down2(F.max_pool2d(a, 2))
            c = self.middle(F.avg_pool2d(b, 2))
            b = self.join2(torch.cat((self.up2(c), b), 1))
            a = self.join1(torch.cat((F.interpolate(b, scale_factor=2, mode="bilinear", align_corners=False), a), 1))
            return self.out(a)

    model = UNet()
    x = torch.randn(2, 1, 16, 16)
    mask = (x.abs() > 0.7).float()

    def loss():
        logits = model(x)
        p = logits.sigmoid()
        dice = 1 - (2 * (p * mask).sum((1, 2, 3)) + 1) / (p.sum((1, 2, 3)) + mask.sum((1, 2, 3)) + 1)
        return F.binary_cross_entropy_with_logits(logits, mask, pos_weight=torch.tensor([2.0])) + dice.mean()

    losses = fit(torch.optim.RMSprop(model.parameters(), lr=1e-3), loss, 4)
    with torch.no_grad():
        predicted = model(x) > 0
        target = mask.bool()
        iou = (predicted & target).sum() / (predicted | target).sum().clamp(min=1)
    return {"losses": losses, "iou": iou, "grads": gradients(model)}


def siamese_triplet(torch):
    nn, F = torch.nn, torch.nn.functional
    tower = nn.Sequential(nn.Linear(10, 16), nn.PReLU(), nn.BatchNorm1d(16), nn.Linear(16, 4))
    anchor, positive, negative = torch.randn(3, 12, 10).unbind(0)
    triplet = nn.TripletMarginLoss(margin=0.5, p=2)

    def loss():
        a, p, n = (F.normalize(tower(x), dim=-1) for x in (anchor, positive, negative))
        similar = F.cosine_embedding_loss(a, n, -torch.ones(len(a)), margin=0.1)
        return triplet(a, p, n) + 0.1 * similar + F.pairwise_distance(a, p).mean()

    losses = fit(torch.optim.Adagrad(tower.parameters(), lr=0.05), loss, 6)
    with torch.no_grad():
        distances = torch.cdist(tower(anchor), tower(negative))
    return {"losses": losses, "distances": distances, "nearest": distances.min(dim=1), "state": parameters(tower)}


def contrastive(torch):
    nn, F = torch.nn, torch.nn.functional
    encoder = nn.Sequential(nn.Linear(20, 32), nn.Tanh(), nn.Linear(32, 8))
    scale = nn.Parameter(torch.tensor(1 / 0.07).log())
    x = torch.randn(16, 20)

    def loss():
        first = F.normalize(encoder(x + 0.1 * torch.randn_like(x)), dim=1)
        second = F.normalize(encoder(x * torch.empty_like(x).bernoulli_(0.9)), dim=1)
        logits = scale.exp() * first @ second.T
        labels = torch.arange(len(x), device=x.device)
        return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2

    optimizer = torch.optim.Adam(
        [{"params": encoder.parameters(), "weight_decay": 1e-4}, {"params": [scale], "lr": 1e-2}], lr=1e-3
    )
    losses = fit(optimizer, loss, 6)
    return {"losses": losses, "scale": scale, "state": parameters(encoder), "optimizer": repr(optimizer)}


def distillation(torch):
    nn, F = torch.nn, torch.nn.functional
    teacher = nn.Sequential(nn.Linear(8, 64), nn.GELU(approximate="tanh"), nn.Linear(64, 4)).eval().requires_grad_(False)
    student = nn.Sequential(nn.Linear(8, 8), nn.Hardswish(), nn.Linear(8, 4))
    x = torch.randn(32, 8)
    y = teacher(x).argmax(-1)

    def loss(temperature=4.0):
        out = student(x)
        with torch.no_grad():
            soft = F.softmax(teacher(x) / temperature, dim=-1)
        kl = F.kl_div(F.log_softmax(out / temperature, dim=-1), soft, reduction="batchmean") * temperature**2
        return 0.7 * kl + 0.3 * F.cross_entropy(out, y)

    losses = fit(torch.optim.NAdam(student.parameters(), lr=0.02), loss, 8)
    return {"losses": losses, "state": parameters(student), "teacher": [p.grad is None for p in teacher.parameters()]}


def detection(torch):
    """Boxes: intersection over union, greedy suppression, smooth L1, focal loss."""
    F = torch.nn.functional
    corners = torch.rand(30, 2) * 50
    boxes = torch.cat([corners, corners + torch.rand(30, 2) * 30 + 1], dim=1)
    scores = torch.rand(30)

    def iou(a, b):
        top = torch.maximum(a[:, None, :2], b[:, :2])
        bottom = torch.minimum(a[:, None, 2:], b[:, 2:])
        inner = (bottom - top).clamp(min=0).prod(dim=2)
        area = lambda z: (z[:, 2] - z[:, 0]) * (z[:, 3] - z[:, 1])  # noqa: E731
        return inner / (area(a)[:, None] + area(b) - inner)

    overlap = iou(boxes, boxes)
    order, kept = scores.argsort(descending=True), []
    while order.numel() > 0:
        i = order[0]
        kept.append(i.item())
        order = order[1:][overlap[i, order[1:]] <= 0.3]
    deltas = torch.randn(30, 4, requires_grad=True)
    logits = torch.randn(30, 3, requires_grad=True)
    target = F.one_hot(torch.randint(3, (30,)), 3).float()
    p = torch.sigmoid(logits)
    p_t = p * target + (1 - p) * (1 - target)
    focal = ((1 - p_t) ** 2 * F.binary_cross_entropy(p, target, reduction="none")).sum() / len(kept)
    loss = F.smooth_l1_loss(deltas[kept], boxes[kept] / 50, beta=0.1) + F.huber_loss(deltas, torch.zeros(30, 4)) + focal
    loss.backward()
    return {"overlap": overlap, "kept": kept, "loss": loss, "deltas": deltas.grad, "logits": logits.grad}


def augment(torch):
    """Images flipped, rolled, cropped, padded, warped and blurred, as an input pipeline does."""
    F = torch.nn.functional
    x = torch.rand(4, 3, 12, 12)
    flipped = torch.where(torch.rand(4, 1, 1, 1) < 0.5, x.flip(-1), x)
    rolled = torch.roll(flipped, shifts=(1, -2), dims=(2, 3)).rot90(1, (2, 3))
    padded = F.pad(rolled, (2, 2, 1, 1), mode="reflect")[..., 1:-1, :]
    mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    normal = (padded - mean[:, None, None]) / std.view(1, 3, 1, 1)
    angle = torch.tensor(0.3)
    theta = torch.stack(
        [torch.stack([angle.cos(), -angle.sin(), angle * 0]), torch.stack([angle.sin(), angle.cos(), angle * 0])]
    )
    grid = F.affine_grid(theta.expand(4, 2, 3), list(normal.shape), align_corners=False)
    warped = F.grid_sample(normal, grid, mode="bilinear", padding_mode="border", align_corners=False)
    line = torch.exp(-torch.linspace(-1, 1, 5).square())
    kernel = torch.outer(line, line).div_(line.sum() ** 2).expand(3, 1, 5, 5)
    blurred = F.conv2d(warped, kernel, padding=2, groups=3)
    shuffled = F.pixel_shuffle(torch.randn(1, 8, 3, 3), 2)
    columns = F.unfold(blurred, (3, 3), stride=3)
    back = F.fold(columns, blurred.shape[-2:], 3, stride=3)
    as_bytes = (x * 255).round().clamp(0, 255).to(torch.uint8).permute(0, 2, 3, 1).contiguous()
    return {
        "warped": warped,
        "blurred": blurred,
        "shuffled": shuffled,
        "columns": columns,
        "back": back,
        "bytes": as_bytes,
        "histogram": torch.histc(blurred, 10),
        "counts": torch.bincount(as_bytes.flatten().long(), minlength=256),
    }
