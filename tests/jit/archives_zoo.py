"""Modules that torch or rushlight scripts or traces, for archives: each entry of `ZOO` makes (what is saved, the arguments of a call)."""

# ruff: noqa: UP006, UP007, UP035, UP045 (scripted code as people write it; annotations must not be postponed)

from enum import Enum
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

import pytest

torch = pytest.importorskip(globals().get("LIBRARY", "torch"))  # rushlight, if a test sets LIBRARY
nn, F, jit = torch.nn, torch.nn.functional, torch.jit

ZOO = {}


def entry(function):
    ZOO[function.__name__] = function
    return function


def scripted(module, *args):
    return jit.script(module.eval()), args


def traced(module, *args, **options):
    return jit.trace(module.eval(), args, **options), args


# Plain networks


def mlp():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.LayerNorm(8), nn.Linear(8, 2), nn.Softmax(-1))


@entry
def mlp_scripted():
    return scripted(mlp(), torch.rand(3, 4))


@entry
def mlp_traced():
    return traced(mlp(), torch.rand(3, 4))


class Convolutional(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(2),
            nn.Conv2d(4, 6, 3, stride=2, padding="same" if False else 1, groups=2), nn.GELU(), nn.AdaptiveAvgPool2d((2, 2)),
            nn.Dropout(0.3),
        )  # fmt: skip
        self.classifier = nn.Linear(24, 5)

    def forward(self, x):
        x = self.features(x)
        x = torch.flatten(x, 1)
        return F.log_softmax(self.classifier(x), dim=1)


@entry
def cnn_scripted():
    return scripted(Convolutional(), torch.rand(2, 3, 8, 8))


@entry
def cnn_traced():
    return traced(Convolutional(), torch.rand(2, 3, 8, 8))


class Block(nn.Module):
    def __init__(self, planes, downsample=None):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(planes, planes, 3, padding=1, bias=False), nn.BatchNorm2d(planes)
        self.conv2, self.bn2 = nn.Conv2d(planes, planes, 3, padding=1, bias=False), nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample

    def forward(self, x):
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 7, 2, 3)
        self.layers = nn.ModuleList([Block(4), Block(4, nn.Conv2d(4, 4, 1))])
        self.pool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(4, 3)
        for each in self.modules():
            if isinstance(each, nn.BatchNorm2d):
                nn.init.uniform_(each.running_mean), nn.init.uniform_(each.running_var, 0.5, 1.5)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.stem(x)), 3, 2, 1)
        for layer in self.layers:
            x = layer(x)
        return self.fc(self.pool(x).flatten(1))


@entry
def resnet_scripted():
    return scripted(Residual(), torch.rand(2, 3, 16, 16))


@entry
def resnet_traced():
    return traced(Residual(), torch.rand(2, 3, 16, 16))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.middle = nn.Conv2d(1, 4, 3, 2, 1), nn.Conv2d(4, 4, 3, 1, 1)
        self.up, self.out = nn.ConvTranspose2d(4, 4, 2, 2), nn.Conv2d(5, 1, 1)
        self.norm, self.act = nn.GroupNorm(2, 4), nn.LeakyReLU(0.1)

    def forward(self, x):
        y = self.act(self.norm(self.middle(self.down(x))))
        y = F.interpolate(self.up(y), scale_factor=1.0, mode="nearest")
        z = F.interpolate(y, size=[x.shape[2], x.shape[3]], mode="bilinear", align_corners=False)
        return torch.sigmoid(self.out(torch.cat([z, F.pad(x, (0, 0, 0, 0))], 1)))


@entry
def unet_scripted():
    return scripted(UNet(), torch.rand(1, 1, 8, 8))


@entry
def unet_traced():
    return traced(UNet(), torch.rand(1, 1, 8, 8))


# Transformers


class BertLike(nn.Module):
    def __init__(self, vocabulary=50, width=16, heads=4):
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, width, padding_idx=0), nn.Embedding(12, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.register_buffer("position_ids", torch.arange(12).unsqueeze(0))
        self.layers = nn.ModuleList([BertLayer(width, heads) for _ in range(2)])
        self.pooler = nn.Linear(width, width)

    def forward(self, ids, mask):
        x = self.norm(self.words(ids) + self.places(self.position_ids[:, : ids.size(1)]))
        extended = (1.0 - mask[:, None, None, :].to(x.dtype)) * -10000.0
        for layer in self.layers:
            x = layer(x, extended)
        return x, torch.tanh(self.pooler(x[:, 0]))


class BertLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.out, self.first, self.second = nn.Linear(width, width), nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.heads = heads

    def split(self, x):
        return x.view(x.size(0), x.size(1), self.heads, -1).permute(0, 2, 1, 3)

    def forward(self, x, mask):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = torch.matmul(q, k.transpose(-1, -2)) / (q.size(-1) ** 0.5) + mask
        context = torch.matmul(F.softmax(scores, dim=-1), v).permute(0, 2, 1, 3).contiguous()
        x = self.first(x + self.out(context.view(x.size(0), x.size(1), -1)))
        return self.second(x + self.down(F.gelu(self.up(x))))


def sentence():
    return torch.tensor([[5, 6, 7, 0], [8, 9, 0, 0]]), torch.tensor([[1, 1, 1, 0], [1, 1, 0, 0]])


@entry
def bert_scripted():
    return scripted(BertLike(), *sentence())


@entry
def bert_traced():
    return traced(BertLike(), *sentence())


class VisionTransformer(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, 4)
        self.cls, self.place = nn.Parameter(torch.rand(1, 1, width)), nn.Parameter(torch.rand(1, 5, width))
        layer = nn.TransformerEncoderLayer(width, 4, 32, batch_first=True, norm_first=True, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], dim=1) + self.place
        return self.head(self.encoder(x)[:, 0])


@entry
def vit_scripted():
    return scripted(VisionTransformer(), torch.rand(2, 3, 8, 8))


@entry
def vit_traced():
    return traced(VisionTransformer(), torch.rand(2, 3, 8, 8), check_trace=False)


@entry
def encoder_layer_scripted():
    return scripted(nn.TransformerEncoderLayer(8, 2, 16), torch.rand(3, 2, 8))


@entry
def encoder_fast_path():
    module = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).requires_grad_(False)
    return scripted(module, torch.rand(3, 2, 8))


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x, mask):
        return self.attention(x, x, x, key_padding_mask=mask)


@entry
def attention_with_mask():
    return scripted(Masked(), torch.rand(2, 3, 8), torch.tensor([[False, False, True], [False, False, False]]))


@entry
def decoder_scripted():
    return scripted(nn.TransformerDecoderLayer(8, 2, 16), torch.rand(3, 2, 8), torch.rand(4, 2, 8))


# Recurrent


class Seq2Seq(nn.Module):
    """An encoder, and a greedy decoder that stops at the end symbol."""

    def __init__(self, vocabulary=11, width=8):
        super().__init__()
        self.embed, self.encoder = nn.Embedding(vocabulary, width), nn.LSTM(width, width, 2, batch_first=True)
        self.cell, self.out = nn.LSTMCell(width, width), nn.Linear(width, vocabulary)
        self.begin: int = 1
        self.end: int = 2

    def forward(self, ids: torch.Tensor, limit: int = 7) -> Tuple[torch.Tensor, List[int]]:
        encoded, (h, c) = self.encoder(self.embed(ids))
        hidden, state = h[-1], c[-1]
        token = torch.full((ids.size(0),), self.begin, dtype=torch.long)
        steps: List[torch.Tensor] = []
        chosen: List[int] = []
        for step in range(limit):
            hidden, state = self.cell(self.embed(token), (hidden, state))
            logits = self.out(hidden)
            token = logits.argmax(-1)
            steps.append(logits)
            chosen.append(int(token[0].item()))
            if bool((token == self.end).all()):
                break
        return torch.stack(steps, 1), chosen


@entry
def seq2seq_greedy():
    return scripted(Seq2Seq(), torch.tensor([[3, 4, 5], [6, 7, 8]]))


class Wrapped(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)


@entry
def lstm_bidirectional():
    return scripted(Wrapped(nn.LSTM(3, 4, 2, bidirectional=True, dropout=0.1)), torch.rand(5, 2, 3))


@entry
def gru_traced():
    return traced(nn.GRU(3, 4, batch_first=True), torch.rand(2, 5, 3))


@entry
def rnn_scripted():
    return scripted(Wrapped(nn.RNN(3, 4, nonlinearity="relu")), torch.rand(5, 2, 3))


class ScriptedCells(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells = nn.ModuleDict({"gru": nn.GRUCell(3, 3), "rnn": nn.RNNCell(3, 3)})

    def forward(self, x: torch.Tensor):
        state = x.new_zeros(x.size(1), 3)
        out = torch.jit.annotate(List[torch.Tensor], [])
        for step in x.unbind(0):
            for _name, cell in self.cells.items():
                state = cell(step, state)
            out += [state]
        return torch.stack(out), state


@entry
def cells_in_a_dict():
    return scripted(ScriptedCells(), torch.rand(4, 2, 3))


# The language


class Boxes(NamedTuple):
    boxes: torch.Tensor
    scores: torch.Tensor
    labels: List[str]


class Mode(Enum):
    SUM = 1
    MEAN = 2


@jit.script
class Counter:
    def __init__(self, names: List[str], scale: float):
        self.names = names
        self.scale = scale
        self.seen: Dict[str, int] = {}
        self.depth = 0

    def add(self, name: str) -> int:
        if name not in self.seen:
            self.seen[name] = 0
        self.seen[name] += 1
        return self.seen[name]

    def total(self) -> float:
        s = 0.0
        for _, v in self.seen.items():
            s += v * self.scale
        return s

    def __enter__(self):
        self.depth += 1
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any):
        self.depth -= 1


class Detection(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 6)
        self.names = ["cat", "dog"]
        self.threshold = 0.3

    def suppress(self, boxes: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        order = scores.argsort(0, True)
        keep: List[int] = []
        for i in range(order.size(0)):
            index = int(order[i])
            good = True
            for k in keep:
                low, high = torch.max(boxes[k, :2], boxes[index, :2]), torch.min(boxes[k, 2:], boxes[index, 2:])
                inter = (high - low).clamp(min=0).prod()
                if inter > 0.5:
                    good = False
                    break
            if good:
                keep.append(index)
        return torch.tensor(keep, dtype=torch.long)

    def forward(self, images: List[torch.Tensor]) -> Tuple[List[Boxes], Dict[str, torch.Tensor], float]:
        found: List[Boxes] = []
        counter = Counter(self.names, 0.5)
        losses: Dict[str, torch.Tensor] = {}
        with counter:
            for number, image in enumerate(images):
                out = self.head(image)
                boxes, scores = out[:, :4], out[:, 4:].softmax(-1)
                best, label = scores.max(1)
                mask = best > self.threshold
                kept = self.suppress(boxes[mask], best[mask])
                labels = [self.names[int(i)] for i in label[mask][kept]]
                for name in labels:
                    _ = counter.add(name)
                found.append(Boxes(boxes[mask][kept], best[mask][kept], labels))
                losses[f"image_{number}"] = out.pow(2).mean()
        assert len(found) == len(images), "one result per image"
        return found, losses, counter.total()


@entry
def detection_head():
    return scripted(Detection(), [torch.rand(5, 4), torch.rand(3, 4)])


class Forking(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(3, 3), nn.Linear(3, 3)

    def work(self, x: torch.Tensor, n: int) -> torch.Tensor:
        for _ in range(n):
            x = torch.tanh(self.right(x))
        return x

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        futures = torch.jit.annotate(List[torch.jit.Future[torch.Tensor]], [])
        for n in range(3):
            futures.append(torch.jit.fork(self.work, x, n))
        y = torch.jit.fork(self.left, x)
        total = torch.jit.wait(y)
        for future in futures:
            total = total + torch.jit.wait(future)
        return total


@entry
def forks():
    return scripted(Forking(), torch.rand(2, 3))


class WithEnums(nn.Module):
    def __init__(self):
        super().__init__()
        self.mode = Mode.MEAN

    def forward(self, x: torch.Tensor, other: Mode = Mode.SUM) -> Tuple[torch.Tensor, str, int]:
        result = x.sum() if other == Mode.SUM else x.mean()
        if self.mode == Mode.MEAN:
            result = result + self.mode.value
        return result, self.mode.name, len(Mode.SUM.name)


@entry
def enums():
    return scripted(WithEnums(), torch.rand(3))


@jit.interface
class Transform(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pass


class Scale(nn.Module):
    def __init__(self, k: float):
        super().__init__()
        self.k = k

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.k


class Shift(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.rand(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.bias


class WithInterfaces(nn.Module):
    a: Transform
    b: Transform

    def __init__(self):
        super().__init__()
        self.a, self.b = Scale(2.0), Shift()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.b(self.a(x))


@entry
def interfaces():
    return scripted(WithInterfaces(), torch.rand(2, 3))


class Strings(nn.Module):
    def forward(self, words: List[str], n: int) -> Dict[str, List[int]]:
        table: Dict[str, List[int]] = {}
        for i, word in enumerate(words):
            key = word.strip().lower().replace("-", "_")
            if key.startswith("x") or len(key) == 0:
                continue
            if key not in table:
                table[key] = torch.jit.annotate(List[int], [])
            table[key].append(i * n)
        table["joined: " + ",".join(words) + f"{n} '\"\\\n\té"] = [len(words), 7 // 2, -7 % 3, ord("a")]
        return table


@entry
def strings_and_dicts():
    return scripted(Strings(), ["A-b", " a_B", "xyz", "c"], 3)


class Exits(nn.Module):
    def forward(self, x: torch.Tensor, y: Optional[torch.Tensor] = None, k: Union[int, str] = 3) -> Tuple[torch.Tensor, int]:
        if y is None:
            y = torch.zeros_like(x)
        count = 0
        while count < 10:
            count += 1
            if count == 3:
                continue
            if bool(y.sum() > 4):
                return y, count
            y = y + x
            if count > 8:
                break
        if isinstance(k, int):
            count += k
        else:
            count += len(k)
        return y * (1.5 if count > 2 else float("inf")), count


@entry
def early_exits():
    return scripted(Exits(), torch.rand(3))


class Attributes(nn.Module):
    table: Dict[str, torch.Tensor]
    maybe: Optional[int]  # noqa: UP045
    nested: List[List[int]]

    def __init__(self):
        super().__init__()
        self.table, self.maybe, self.nested = {"a": torch.ones(2)}, None, [[1], []]
        self.pair, self.text, self.number = (1, 2.5), "a 'b' \"c\" \n ü", 1.5e-8
        self.device, self.kind, self.flag = torch.device("cpu"), torch.float16, True
        self.complex = 1 + 2j
        self.register_buffer("kept", torch.arange(3))
        self.register_buffer("dropped", torch.ones(3), persistent=False)
        self.weight = nn.Parameter(torch.rand(3, dtype=torch.float64), requires_grad=False)
        self.shared = self.weight

    @jit.export
    def count(self, n: int) -> int:
        if self.maybe is None:
            self.maybe = n
        return len(self.nested) + n

    def forward(self, x: torch.Tensor):
        self.table["b"] = x
        n = self.count(2)
        y = self.weight + self.shared + self.kept + self.dropped
        return y.sum() + self.table["a"].sum() + n + self.pair[1] + self.number, self.text, self.complex


@entry
def attributes():
    return scripted(Attributes(), torch.rand(2))


class Restored(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.rand(3)
        self.training_mode = False

    @jit.export
    def __getstate__(self):
        return (self.weight * 2, self.training_mode, self.training)

    @jit.export
    def __setstate__(self, state: Tuple[torch.Tensor, bool, bool]):
        self.weight = state[0] / 2
        self.training_mode = state[1]
        self.training = state[2]

    def forward(self, x):
        return x * self.weight


@entry
def state_methods():
    return scripted(Restored(), torch.rand(3))


class Indexing(nn.Module):
    def forward(self, x: torch.Tensor, i: torch.Tensor):
        y = x.clone()
        y[0] = 1
        y[1:, ::2] = 2.5
        y[i] += 1
        y[..., -1] *= 2
        z = x[:, None, 1:3]
        w = x[i, :]
        mask = x > 0.5
        y[mask] = 0
        return y, z, w, x[-1][0], x[x > 0.2].sum(), x.t()[1]


@entry
def indexing():
    return scripted(Indexing(), torch.rand(4, 5), torch.tensor([0, 2]))


@jit.script
def helper_function(x: torch.Tensor, times: int = 2) -> torch.Tensor:
    for _ in range(times):
        x = x * 1.5
    return x


class TracedOddities(nn.Module):
    def __init__(self):
        super().__init__()
        self.helper = helper_function
        self.register_buffer("scale", torch.tensor([2.0, 3.0]))

    def forward(self, x):
        b, c = x.shape
        y = x.reshape(c, b).repeat(2, 1) * 0.5
        y[0] = 1
        z = self.helper(x.sum(0), 3)
        w = torch.zeros(b, dtype=torch.int64) + torch.arange(b)
        return {"y": y, "z": z, "w": w.float() @ x, "s": x.std(), "e": torch.einsum("ij,ij->i", x, x), "t": x * self.scale}


@entry
def traced_with_script():
    return traced(TracedOddities(), torch.rand(3, 2), strict=False)


class Mathematics(nn.Module):
    def forward(self, x: torch.Tensor, a: int, b: float):
        q = [a + b, a - b, a * b, a / 3, a // 2, a % 3, a**2, b**0.5, -a, abs(-b), float(a), min(a, 2), max(b, 1.0)]
        flags = [a > 1, a == 3, not (a < 2), a != 3 and b > 0, a > 100 or b < 2]
        r = 2 * x + 1 - x / 2 + 3 / (x + 1) - (1 - x) ** 2 + x % 2 + (2**x) // 1
        return q, flags, r, ~(x > 0.5) & (x < 0.9) | (x == 0), a << 2, a & 1, round(b), 1e-8, float("-inf"), 3 + 2j


@entry
def mathematics():
    return scripted(Mathematics(), torch.rand(4), 3, 1.75)


class Containers(nn.Module):
    def forward(self, xs: List[torch.Tensor], d: Dict[int, Tuple[int, str]]):
        pairs = [(i, x * i) for i, x in enumerate(xs)]
        back = [x for x in xs[::-1]]
        total = torch.zeros(1)
        for (i, x), y in zip(pairs, back):
            total = total + (x * y).sum() * i
        keys = sorted([k for k in d.keys()])
        words = [d[k][1] for k in keys]
        nested = {k: [k] * 2 for k in keys}
        xs.append(total)
        last = xs.pop()
        a, *rest = (1, 2, 3)
        values = [int(v) for v in total.new_ones(2).tolist()] if False else [len(rest)]
        return last, keys, words, nested, a, values, len(xs), d.get(9), 3 in d


class Pieces(nn.Module):
    """A variable that begins as None and is carried by a loop; a function's int for a float."""

    def cut(self, word: str) -> List[str]:
        found: List[str] = []
        start = 0
        while start < len(word):
            end = len(word)
            piece: Optional[str] = None
            while start < end:
                if end - start < 3:
                    piece = word[start:end]
                    break
                end -= 1
            if piece is None:
                return ["none"]
            found.append(piece)
            start = end
        return found

    def forward(self, words: List[str], x: torch.Tensor):
        found: List[str] = []
        for word in words:
            found = self.cut(word)
            if len(found) > 1:
                words = []
        return found, words, F.triplet_margin_loss(x, x + 1, x * 2), torch.jit._wait(torch.jit._fork(self.cut, "abc"))


@entry
def pieces():
    return scripted(Pieces(), ["ab", "abcde"], torch.rand(2, 3))


@entry
def containers():
    return scripted(Containers(), [torch.rand(2), torch.rand(2)], {5: (1, "five"), 3: (2, "three")})


@jit.script
def a_function(x: torch.Tensor, k: float = 2.0):
    y = helper_function(x)
    return F.relu(y - k) + F.softmax(x, 0) + torch.rand(2, 3).mul(0).sum()


@entry
def function_scripted():
    return a_function, (torch.rand(3), 2.0)


@entry
def function_traced():
    return jit.trace(lambda x, y: (x.matmul(y).relu(), x.topk(2)[0], torch.where(x > 0.5, x, 0)),
                     (torch.rand(3, 3), torch.rand(3, 3))), (torch.rand(3, 3), torch.rand(3, 3))  # fmt: skip


class Pretrained(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.EmbeddingBag(10, 4, mode="mean")
        self.first = nn.utils.parametrizations.weight_norm(nn.Linear(4, 4)) if False else nn.Linear(4, 4)
        self.bilinear, self.prelu = nn.Bilinear(4, 4, 2), nn.PReLU()
        self.conv1, self.pad = nn.Conv1d(2, 3, 2, padding_mode="zeros"), nn.ReflectionPad1d(1)

    def forward(self, ids, offsets):
        x = self.prelu(self.first(self.table(ids, offsets)))
        y = self.conv1(self.pad(x.unsqueeze(0)))
        return self.bilinear(x, x), y, F.cosine_similarity(x[:1], x[1:]), F.one_hot(ids, 10), F.normalize(x)


@entry
def embedding_bag():
    return scripted(Pretrained(), torch.tensor([1, 2, 4, 5]), torch.tensor([0, 2]))
