"""Programs that model sequences and text."""

import math

from tests.programs.common import fit, gradients, parameters


def lstm_language_model(torch):
    nn, F = torch.nn, torch.nn.functional
    text = "the quick brown fox jumps over the lazy dog " * 4
    letters = sorted(set(text))
    data = torch.tensor([letters.index(c) for c in text])

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(len(letters), 12)
            self.lstm = nn.LSTM(12, 24, num_layers=2, batch_first=True, dropout=0.1)
            self.head = nn.Linear(24, len(letters))

        def forward(self, x, state=None):
            out, state = self.lstm(self.embedding(x), state)
            return self.head(out), state

    model = Model()
    windows = data[:161].unfold(0, 21, 20)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)

    def loss():
        logits, _ = model(windows[:, :-1])
        return F.cross_entropy(logits.reshape(-1, len(letters)), windows[:, 1:].reshape(-1))

    losses = fit(optimizer, loss, 5)
    model.eval()
    token, state, written = data[None, :1], None, []
    with torch.no_grad():
        for _ in range(12):
            logits, state = model(token, state)
            token = torch.multinomial(F.softmax(logits[:, -1] / 0.8, dim=-1), 1)
            written.append(letters[token.item()])
    return {"losses": losses, "grads": gradients(model), "written": "".join(written), "hidden": state, "model": repr(model)}


def seq2seq_attention(torch):
    """A GRU encoder on packed sequences, a decoder with additive attention and teacher forcing."""
    nn, F = torch.nn, torch.nn.functional
    rnn = nn.utils.rnn
    lengths = torch.tensor([7, 5, 3])
    source = rnn.pad_sequence([torch.randint(1, 20, (n,)) for n in lengths.tolist()], batch_first=True)
    target = torch.randint(1, 20, (3, 6))

    class Seq2Seq(nn.Module):
        def __init__(self, width=16):
            super().__init__()
            self.embed = nn.Embedding(20, width, padding_idx=0)
            self.encoder = nn.GRU(width, width, batch_first=True, bidirectional=True)
            self.bridge = nn.Linear(2 * width, width)
            self.query, self.key, self.score = (
                nn.Linear(width, width),
                nn.Linear(2 * width, width),
                nn.Linear(width, 1, bias=False),
            )
            self.cell = nn.GRUCell(3 * width, width)
            self.out = nn.Linear(width, 20)

        def forward(self, source, lengths, target, forcing):
            packed = rnn.pack_padded_sequence(self.embed(source), lengths, batch_first=True, enforce_sorted=False)
            packed_memory, hidden = self.encoder(packed)
            memory, _ = rnn.pad_packed_sequence(packed_memory, batch_first=True)
            hidden = torch.tanh(self.bridge(torch.cat([hidden[0], hidden[1]], dim=-1)))
            mask = torch.arange(memory.size(1))[None, :] >= lengths[:, None]
            token, outputs, weights = target[:, 0], [], []
            for step in range(1, target.size(1)):
                energy = self.score(torch.tanh(self.query(hidden).unsqueeze(1) + self.key(memory))).squeeze(-1)
                attention = energy.masked_fill(mask, float("-inf")).softmax(-1)
                context = torch.bmm(attention.unsqueeze(1), memory).squeeze(1)
                hidden = self.cell(torch.cat([self.embed(token), context], -1), hidden)
                outputs.append(self.out(hidden))
                weights.append(attention)
                token = target[:, step] if torch.rand(1).item() < forcing else outputs[-1].argmax(-1)
            return torch.stack(outputs, 1), torch.stack(weights, 1)

    model = Seq2Seq()
    for name, parameter in model.named_parameters():
        if "weight" in name and parameter.dim() > 1:
            nn.init.xavier_uniform_(parameter)
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    losses = fit(
        optimizer, lambda: F.cross_entropy(model(source, lengths, target, 0.5)[0].flatten(0, 1), target[:, 1:].flatten()), 5
    )
    logits, weights = model(source, lengths, target, 1.0)
    return {"losses": losses, "logits": logits, "weights": weights, "grads": gradients(model)}


def transformer_translation(torch):
    nn, F = torch.nn, torch.nn.functional

    class PositionalEncoding(nn.Module):
        def __init__(self, width, longest=64):
            super().__init__()
            position = torch.arange(longest).unsqueeze(1)
            rate = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
            table = torch.zeros(longest, 1, width)
            table[:, 0, 0::2] = torch.sin(position * rate)
            table[:, 0, 1::2] = torch.cos(position * rate)
            self.register_buffer("table", table)

        def forward(self, x):
            return x + self.table[: x.size(0)]

    embed, encode, head = nn.Embedding(30, 16, padding_idx=0), PositionalEncoding(16), nn.Linear(16, 30)
    model = nn.Transformer(16, 4, 2, 2, dim_feedforward=32, dropout=0.1)
    source, target = torch.randint(1, 30, (9, 4)), torch.randint(1, 30, (7, 4))
    source[6:, 1] = 0
    target[5:, 2] = 0
    causal = nn.Transformer.generate_square_subsequent_mask(6)
    everything = nn.ModuleList([embed, encode, model, head])
    criterion = nn.CrossEntropyLoss(ignore_index=0)

    def forward():
        source_pad, target_pad = (source == 0).T, (target[:-1] == 0).T.float() * -1e4
        memory = model(
            encode(embed(source) * 4),
            encode(embed(target[:-1])),
            tgt_mask=causal,
            src_key_padding_mask=source_pad,
            tgt_key_padding_mask=target_pad,
            memory_key_padding_mask=source_pad,
        )
        return head(memory)

    optimizer = torch.optim.Adam(everything.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: 16**-0.5 * min((step + 1) ** -0.5, (step + 1) * 50**-1.5)
    )
    losses = []
    for _ in range(4):
        losses += fit(optimizer, lambda: criterion(forward().view(-1, 30), target[1:].reshape(-1)), 1)
        schedule.step()
    everything.eval()
    with torch.no_grad():
        out = F.log_softmax(forward(), -1)
    return {"losses": losses, "out": out, "table": encode.table, "grads": gradients(everything), "mask": causal}


def masked_language_model(torch):
    """BERT: mask tokens at random, predict them; tied output weights."""
    nn, F = torch.nn, torch.nn.functional

    class Layer(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-12), nn.LayerNorm(width, eps=1e-12)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x, mask):
            batch, length, width = x.shape
            q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1)) + mask
            x = self.norm1(x + self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, width)))
            return self.norm2(x + self.down(F.gelu(self.up(x))))

    class Bert(nn.Module):
        def __init__(self, vocabulary=40, width=32):
            super().__init__()
            self.words, self.positions = nn.Embedding(vocabulary, width, padding_idx=0), nn.Embedding(32, width)
            self.register_buffer("ids", torch.arange(32).expand((1, -1)), persistent=False)
            self.layers = nn.ModuleList([Layer(width, 4) for _ in range(2)])
            self.bias = nn.Parameter(torch.zeros(vocabulary))
            self.apply(self._init)

        @staticmethod
        def _init(module):
            if isinstance(module, (nn.Linear, nn.Embedding)):
                module.weight.data.normal_(mean=0.0, std=0.02)
            if isinstance(module, nn.Linear) and module.bias is not None:
                module.bias.data.zero_()

        def forward(self, tokens, attention):
            mask = (1.0 - attention[:, None, None, :].to(dtype=self.bias.dtype)) * torch.finfo(self.bias.dtype).min
            x = self.words(tokens) + self.positions(self.ids[:, : tokens.size(1)])
            for layer in self.layers:
                x = layer(x, mask)
            return F.linear(x, self.words.weight, self.bias)

    model = Bert()
    tokens = torch.randint(4, 40, (4, 12))
    attention = torch.ones_like(tokens)
    attention[1, 8:] = 0
    labels = tokens.clone()
    chosen = torch.bernoulli(torch.full(labels.shape, 0.3)).bool() & attention.bool()
    labels[~chosen] = -100
    replaced = torch.bernoulli(torch.full(labels.shape, 0.8)).bool() & chosen
    inputs = tokens.masked_fill(replaced, 3)
    decay = [p for n, p in model.named_parameters() if not any(key in n for key in ("bias", "norm"))]
    plain = [p for n, p in model.named_parameters() if any(key in n for key in ("bias", "norm"))]
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}], lr=1e-3)
    losses = fit(optimizer, lambda: F.cross_entropy(model(inputs, attention).view(-1, 40), labels.view(-1)), 4)
    return {"losses": losses, "labels": labels, "inputs": inputs, "state": parameters(model), "grads": gradients(model)}


def gpt_sampling(torch):
    """GPT: scaled dot product attention, a key and value cache, and sampling with top-k and top-p."""
    nn, F = torch.nn, torch.nn.functional

    class Attention(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

        def forward(self, x, cache=None):
            q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
            if cache is not None:
                k, v = torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=cache is None)
            return self.out(y.transpose(1, 2).flatten(2)), (k, v)

    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.ln1, self.ln2, self.attention = nn.LayerNorm(width), nn.LayerNorm(width), Attention(width, heads)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU("tanh"), nn.Linear(4 * width, width))

        def forward(self, x, cache=None):
            y, cache = self.attention(self.ln1(x), cache)
            x = x + y
            return x + self.mlp(self.ln2(x)), cache

    class GPT(nn.Module):
        def __init__(self, vocabulary=50, width=32):
            super().__init__()
            self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(64, width)
            self.blocks = nn.ModuleList(Block(width, 4) for _ in range(2))
            self.ln = nn.LayerNorm(width)
            self.head = nn.Linear(width, vocabulary, bias=False)
            self.head.weight = self.wte.weight

        def forward(self, ids, caches=None):
            start = 0 if caches is None else caches[0][0].size(2)
            x = self.wte(ids) + self.wpe(torch.arange(start, start + ids.size(1)))
            kept = []
            for i, block in enumerate(self.blocks):
                x, cache = block(x, None if caches is None else caches[i])
                kept.append(cache)
            return self.head(self.ln(x)), kept

    model = GPT()
    ids = torch.randint(0, 50, (4, 16))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=False)
    losses = fit(optimizer, lambda: F.cross_entropy(model(ids[:, :-1])[0].transpose(1, 2), ids[:, 1:]), 4)

    def pick(logits, temperature=0.9, top_k=20, top_p=0.9):
        logits = logits / temperature
        logits[logits < torch.topk(logits, top_k)[0][..., -1, None]] = -float("Inf")
        ordered, index = torch.sort(logits, descending=True)
        total = torch.cumsum(F.softmax(ordered, dim=-1), dim=-1)
        drop = total > top_p
        drop[..., 1:] = drop[..., :-1].clone()
        drop[..., 0] = 0
        logits[drop.scatter(1, index, drop)] = float("-inf")
        return torch.multinomial(F.softmax(logits, dim=-1), num_samples=1)

    @torch.no_grad()
    def generate(ids, steps):
        model.eval()
        logits, caches = model(ids)
        for _ in range(steps):
            ids = torch.cat((ids, pick(logits[:, -1])), dim=1)
            logits, caches = model(ids[:, -1:], caches)
        return ids, logits

    written, logits = generate(ids[:2, :5], 8)
    with torch.no_grad():
        full = model(written)[0][:, -1]
    return {
        "losses": losses,
        "written": written,
        "logits": logits[:, -1],
        "full": full,
        "names": list(dict(model.named_parameters())),
        "keys": list(model.state_dict()),
    }


def llama_block(torch):
    """RMSNorm, rotary embedding with complex numbers and with halves, SwiGLU, grouped queries."""
    nn, F = torch.nn, torch.nn.functional

    class RMSNorm(nn.Module):
        def __init__(self, width, eps=1e-6):
            super().__init__()
            self.eps, self.weight = eps, nn.Parameter(torch.ones(width))

        def forward(self, x):
            return (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + self.eps)).type_as(x) * self.weight

    def rotate_complex(x, freqs):
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * freqs.view(1, x.shape[1], 1, -1)).flatten(3).type_as(x)

    def rotate_half(x):
        a, b = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
        return torch.cat((-b, a), dim=-1)

    class Block(nn.Module):
        def __init__(self, width=32, heads=4, shared=2):
            super().__init__()
            self.heads, self.shared, self.head = heads, shared, width // heads
            self.wq, self.wo = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
            self.wk, self.wv = (nn.Linear(width, shared * self.head, bias=False) for _ in range(2))
            self.w1, self.w3 = nn.Linear(width, 64, bias=False), nn.Linear(width, 64, bias=False)
            self.w2 = nn.Linear(64, width, bias=False)
            self.norm1, self.norm2 = RMSNorm(width), nn.RMSNorm(width, eps=1e-6)

        def forward(self, x, freqs, mask):
            b, n, _ = x.shape
            h = self.norm1(x)
            q = rotate_complex(self.wq(h).view(b, n, self.heads, self.head), freqs)
            k = rotate_complex(self.wk(h).view(b, n, self.shared, self.head), freqs)
            v = self.wv(h).view(b, n, self.shared, self.head)
            k, v = (torch.repeat_interleave(t, self.heads // self.shared, dim=2) for t in (k, v))
            q, k, v = (t.transpose(1, 2) for t in (q, k, v))
            scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(self.head) + mask
            x = x + self.wo(
                torch.matmul(F.softmax(scores.float(), dim=-1).type_as(q), v).transpose(1, 2).contiguous().view(b, n, -1)
            )
            h = self.norm2(x)
            return x + self.w2(F.silu(self.w1(h)) * self.w3(h))

    inverse = 1.0 / (10000.0 ** (torch.arange(0, 8, 2)[:4].float() / 8))
    angles = torch.outer(torch.arange(10), inverse).float()
    freqs = torch.polar(torch.ones_like(angles), angles)
    mask = torch.triu(torch.full((10, 10), float("-inf")), diagonal=1)
    block = Block()
    x = torch.randn(2, 10, 32, requires_grad=True)
    out = block(x, freqs, mask)
    out.square().mean().backward()
    q = torch.randn(2, 10, 4, 8)
    both = torch.cat((angles, angles), dim=-1)[:, None, :]
    rotated = q * both.cos() + rotate_half(q) * both.sin()
    low = block.to(torch.bfloat16)(x.detach().bfloat16(), freqs, mask.bfloat16())
    return {
        "out": out,
        "x": x.grad,
        "rotated": rotated,
        "freqs": freqs,
        "low_dtype": str(low.dtype),
        "low_error": (low - out).abs().max() < 0.2,
    }


def mixture_of_experts(torch):
    nn, F = torch.nn, torch.nn.functional

    class Experts(nn.Module):
        def __init__(self, width=16, count=4, active=2):
            super().__init__()
            self.gate, self.active = nn.Linear(width, count, bias=False), active
            self.experts = nn.ModuleList(
                nn.Sequential(nn.Linear(width, 32), nn.Mish(), nn.Linear(32, width)) for _ in range(count)
            )

        def forward(self, x):
            scores = F.softmax(self.gate(x), dim=1, dtype=torch.float)
            weights, chosen = torch.topk(scores, self.active, dim=-1)
            weights = weights / weights.sum(dim=-1, keepdim=True)
            out = torch.zeros_like(x)
            mask = F.one_hot(chosen, num_classes=len(self.experts)).permute(2, 1, 0)
            for i, expert in enumerate(self.experts):
                slot, token = torch.where(mask[i])
                out.index_add_(0, token, expert(x[token]) * weights[token, slot, None])
            load = mask.float().sum((1, 2)) / x.size(0)
            return out, len(self.experts) * (load * scores.mean(0)).sum()

    model, x, y = Experts(), torch.randn(24, 16), torch.randn(24, 16)

    def loss():
        out, balance = model(x)
        return F.mse_loss(out, y) + 0.01 * balance

    losses = fit(torch.optim.Adam(model.parameters(), 1e-2, amsgrad=True), loss, 5)
    return {"losses": losses, "grads": gradients(model), "out": model(x)}


def ctc_speech(torch):
    nn = torch.nn
    model = nn.Sequential(nn.Conv1d(8, 16, 3, padding=1), nn.ReLU(), nn.BatchNorm1d(16), nn.Conv1d(16, 6, 1, dilation=1))
    sound = torch.randn(3, 8, 20)
    targets, sizes = torch.randint(1, 6, (3, 6)), torch.tensor([6, 4, 5])
    ctc = nn.CTCLoss(blank=0, zero_infinity=True)

    def loss():
        log_probabilities = model(sound).permute(2, 0, 1).log_softmax(2)
        return ctc(log_probabilities, targets, torch.full((3,), 20, dtype=torch.long), sizes)

    losses = fit(torch.optim.Adam(model.parameters(), 1e-2), loss, 6)
    with torch.no_grad():
        best = model(sound).argmax(1)
        decoded = [[c for c in torch.unique_consecutive(row).tolist() if c != 0] for row in best]
    return {"losses": losses, "best": best, "decoded": decoded, "grads": gradients(model)}


def embedding_bag_classifier(torch):
    nn, F = torch.nn, torch.nn.functional

    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.EmbeddingBag(50, 8, mode="mean")
            self.weighted = nn.EmbeddingBag(50, 8, mode="sum")
            self.fc = nn.Linear(16, 3)

        def forward(self, text, offsets, weights):
            return self.fc(
                torch.cat([self.embedding(text, offsets), self.weighted(text, offsets, per_sample_weights=weights)], 1)
            )

    documents = [torch.randint(0, 50, (n,)) for n in (4, 1, 7, 3)]
    text = torch.cat(documents)
    offsets = torch.tensor([0] + [len(d) for d in documents[:-1]]).cumsum(dim=0)
    weights, label = torch.rand(len(text)), torch.tensor([0, 2, 1, 2])
    model = Classifier()
    losses = fit(torch.optim.SGD(model.parameters(), 0.5), lambda: F.cross_entropy(model(text, offsets, weights), label), 5)
    return {"losses": losses, "grads": gradients(model), "state": parameters(model)}


def text_cnn(torch):
    nn, F = torch.nn, torch.nn.functional

    class TextCNN(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding.from_pretrained(torch.randn(30, 8), freeze=True)
            self.convs = nn.ModuleDict({f"k{k}": nn.Conv1d(8, 6, k) for k in (2, 3, 4)})
            self.fc = nn.Linear(18, 1)

        def forward(self, x):
            x = self.embed(x).transpose(1, 2)
            pooled = [F.relu(conv(x)).amax(dim=2) for conv in self.convs.values()]
            return self.fc(torch.hstack(pooled)).squeeze(1)

    model, x, y = TextCNN(), torch.randint(0, 30, (10, 9)), torch.rand(10).round()
    optimizer = torch.optim.Adadelta(filter(lambda p: p.requires_grad, model.parameters()), lr=1.0)
    losses = fit(optimizer, lambda: F.binary_cross_entropy_with_logits(model(x), y), 5)
    return {"losses": losses, "state": parameters(model), "model": repr(model), "grad": model.embed.weight.grad}


def einsum_attention(torch):
    nn = torch.nn
    q, k, v = (torch.randn(2, 5, 3, 4, dtype=torch.float64, requires_grad=True) for _ in range(3))
    relative = torch.randn(9, 3, 4, dtype=torch.float64, requires_grad=True)
    index = torch.arange(5)[:, None] - torch.arange(5)[None, :] + 4
    scores = torch.einsum("bqhd,bkhd->bhqk", q, k) + torch.einsum("bqhd,qkhd->bhqk", q, relative[index])
    weights = torch.softmax(scores / 2, dim=-1)
    out = torch.einsum("bhqk,bkhd->bqhd", weights, v)
    out.pow(2).sum().backward()
    mha = nn.MultiheadAttention(8, 2, dropout=0.0, batch_first=True).double()
    mixed, average = mha(out.new_ones(2, 3, 8).cumsum(1), *[torch.randn(2, 4, 8, dtype=torch.float64)] * 2, need_weights=True)
    return {"out": out, "q": q.grad, "k": k.grad, "v": v.grad, "relative": relative.grad, "mixed": mixed, "average": average}
